// Activations whose backward reads what they have written, not what they read (in-place GELU of
// arXiv 2210.10246): the next product keeps that anyway. Elementwise; one shape, any strides and
// data dtypes (fp32 arithmetic, one rounding at the end).
//
//   InvertedGelu, InvertedTanhGelu, InvertedSilu
//       x → y as Gelu's (exact, in its tanh form) and Silu's forward, bit for bit, and sides: bit
//       i mod 8 of byte i / 8 says of element i of the row-major order whether x lies to the right
//       of the function's minimum. What is left of the last byte is 0.
//
// The backward is dx = dy·f'(x) for the x on that side with f(x) = y, by polynomials of y
// (slopes.h): off by at most 3e-5·|dy|, and by what the rounding of y to its dtype means for the
// slope. That is most beside the minimum, where the slope is 0: 1e-4 in fp32, 0.015 in bf16; over
// normal x it is 0.24 % of the gradient in bf16, where rounding dx is 0.19 %. NaN gives NaN. x = +∞
// gives a slope of 1, x = −∞ NaN, as its value is. Sides are one dense array of bytes. Nothing
// overlaps. Tolerance against the twin: 64 units in the last place of fp32 of |dy|.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void inverted_gelu_forward(const Call& call, Workspace& workspace);
void inverted_gelu_backward(const Call& call, Workspace& workspace);
void inverted_tanh_gelu_forward(const Call& call, Workspace& workspace);
void inverted_tanh_gelu_backward(const Call& call, Workspace& workspace);
void inverted_silu_forward(const Call& call, Workspace& workspace);
void inverted_silu_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void inverted_gelu_forward(const Call& call, Launch& launch);
void inverted_gelu_backward(const Call& call, Launch& launch);
void inverted_tanh_gelu_forward(const Call& call, Launch& launch);
void inverted_tanh_gelu_backward(const Call& call, Launch& launch);
void inverted_silu_forward(const Call& call, Launch& launch);
void inverted_silu_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
