// Transformer Engine's products in eight bits (its Linear, LayerNormLinear and GroupedLinear): an
// opaque op whose row follows from its shapes, so that transforms may cut these.
//
//   x [..., in], weight [out, in] or [experts, in, out], the weight's codes twice → y [..., out],
//   codes of x
//
// Each operand is cast once, to codes by rows and by columns (torch's _scaled_mm has no others).
// What the backward keeps are the columns' codes of x. Those of the weight stay between steps, and
// are made anew in the first micro-batch of each (module/linear.py, module/base.py of
// TransformerEngine 2).
#pragma once

#include "traces/trace.h"

namespace tidemark {

bool is_engine_product(const Trace& trace, const Op& op);

/// Of shapes x, weight and y; `wide` bytes per element outside of products; `keeps_input`: x itself
/// stays instead of its codes. Of a step of so many micro-batches.
OpaqueRow engine_product_row(const Shape& x, const Shape& weight, const Shape& y, std::int64_t wide,
                             bool keeps_input, std::int64_t micro_batches);

/// The rows of all of these, of the shapes that they have now. Where sequence-parallel ranks gather
/// x, that is gathered again for the backward, and no codes of it are kept.
void recount_engine_products(Trace& trace);

}  // namespace tidemark
