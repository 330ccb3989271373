// torchao's linears in eight bits: an opaque op of x and the weight.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// x [..., in], weight [out, in] → y [..., out], and what is kept of the weight: codes and a
/// factor.
bool is_float8_linear(const Trace& trace, const Op& op);

/// The rows of all of these, of the shapes that they have now.
void recount_float8_linears(Trace& trace);

inline constexpr std::string_view float8_linear_operation =
    "torchao::matmul_with_hp_or_float8_args";

/// at::getCUDABlasLtWorkspaceSize(), which scaled_gemm() of cuda/CUDABlas.cpp asks the allocator
/// for.
inline constexpr Bytes float8_product_scratch{1024 * 1024};

}  // namespace tidemark
