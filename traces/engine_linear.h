// Transformer Engine's products of codes in eight or four bits (its Linear, LayerNormLinear and
// GroupedLinear): an opaque op whose row follows from its shapes, so that transforms may cut these.
//
//   x [..., in], weight [out, in] or [experts, in, out], the weight's codes twice → y [..., out],
//   codes of x
//
// Each operand is cast once, to codes by rows and by columns, with their factors behind the codes
// of each row.
// What the backward keeps are the columns' codes of x. Those of the weight stay between steps, and
// are made anew in the first micro-batch of each (module/linear.py, module/base.py of
// TransformerEngine 2).
#pragma once

#include "traces/trace.h"

namespace tidemark {

bool is_engine_product(const Trace& trace, const Op& op);

/// How numbers become codes (transformer_engine/common/recipe, pytorch/tensor).
struct EngineCodes {
  DType dtype;             ///< that products multiply
  std::int64_t in_a_byte;  ///< codes
  std::int64_t group;      ///< numbers along a side that share a factor: sides are multiples
  std::int64_t factor;     ///< bytes of it; none of a factor per tensor
  int passes;              ///< over the numbers, each a kernel: with two the largest is
                           ///< looked for first
};

const EngineCodes& engine_codes(LinearMath math);

/// What rows of x are multiples of: eight (assert_dim_for_fp8_exec() of pytorch/utils.py), or as
/// many as share a factor, because columns are coded, too.
std::int64_t rows_of_codes(LinearMath math);

/// Bytes of so many numbers along a side as codes with their factors. Factors of rows that are no
/// multiples of 128 lie in more.
std::int64_t coded_bytes(const EngineCodes& codes, std::int64_t numbers);

struct EngineProduct {
  Shape x, weight, y;
  std::int64_t wide = 0;     ///< bytes per element outside of products
  bool keeps_input = false;  ///< x itself stays instead of its codes
};

/// By rows and by columns, or one of both where codes with a factor per tensor are multiplied as
/// they lie: from compute capability 10.0 on (nvte_is_non_tn_fp8_gemm_supported()).
std::int64_t copies_of_codes(const StepOptions& step);

OpaqueRow engine_product_row(const StepOptions& step, const EngineProduct& product);

/// The rows of all of these, of the shapes that they have now. Where sequence-parallel ranks gather
/// x, that is gathered again for the backward, and no codes of it are kept.
void recount_engine_products(Trace& trace);

}  // namespace tidemark
