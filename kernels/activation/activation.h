// Activations, elementwise: y = f(x). x, y and the gradients have one shape; any strides and data
// dtypes (fp32 arithmetic, one rounding at the end).
//
//   Gelu          x·Φ(x), or with settings.tanh_approx x·σ(2u), u = √(2/π)·(x + 0.044715·x³),
//                 which is x/2·(1 + tanh u) without its cancellation (arXiv 1606.08415)
//   GeluComposed  the same tanh form as an eager framework composes it: x → y, tanh u, x/2,
//                 1 + tanh u; the backward reads x and those three
//   Silu          x·σ(x)
//   Tanh          the backward reads y: dx = dy·(1 − y²)
//   Sigmoid       σ(x); the backward reads y: dx = dy·y·(1 − y)
//   Relu          max(x, 0); the backward reads y: dx = dy where y is positive or NaN, else 0
//   ReGelu2, ReSilu2  Gelu's and Silu's forward, bit for bit, and 2-bit codes of the segment that
//                 x lies in: code i of the row-major order is bits 2·(i mod 4) of byte i / 4; what
//                 is left of the last byte is 0. The backward multiplies dy by the slope of the
//                 segment (arXiv 2406.16282 and its released code: coefficients below).
//
// The backward of Gelu and Silu reads x. Values that were saved may be Mesa's codes (array.h). The
// 2-bit codes are one dense array of bytes. Nothing overlaps.
// Tolerance: 8 units in the last place of fp32 for values; gradients the same relative to |dy|.
// NaN gives NaN (code 0). x = −∞ gives NaN in Gelu and Silu, as −∞·0 does in PyTorch; so does the
// gradient of Gelu at ±∞. Codes compare by "greater": x on a break point belongs to the segment
// below it.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark {

/// h̃(x) = Σ a·max(x − c, 0) approximates the activation; its derivative is a step of four levels.
struct StepDerivative {
  float a[3], c[3];
};
inline constexpr StepDerivative regelu2_steps = {
    {-0.04922261145617846f, 1.0979632065417297f, -0.048740595085551286f},
    {-3.1858810036855245f, -0.001178821281161997f, 3.190832613414926f}};
inline constexpr StepDerivative resilu2_steps = {
    {-0.04060357190528599f, 1.080925428529668f, -0.040321856624382146f},
    {-6.3050461001646445f, -0.0008684942046214787f, 6.325815242089708f}};

}  // namespace tidemark

namespace tidemark::cpu {

void gelu_forward(const Call& call, Workspace& workspace);
void gelu_backward(const Call& call, Workspace& workspace);
void gelu_composed_forward(const Call& call, Workspace& workspace);
void gelu_composed_backward(const Call& call, Workspace& workspace);
void silu_forward(const Call& call, Workspace& workspace);
void silu_backward(const Call& call, Workspace& workspace);
void tanh_forward(const Call& call, Workspace& workspace);
void tanh_backward(const Call& call, Workspace& workspace);
void sigmoid_forward(const Call& call, Workspace& workspace);
void sigmoid_backward(const Call& call, Workspace& workspace);
void relu_forward(const Call& call, Workspace& workspace);
void relu_backward(const Call& call, Workspace& workspace);
void regelu2_forward(const Call& call, Workspace& workspace);
void regelu2_backward(const Call& call, Workspace& workspace);
void resilu2_forward(const Call& call, Workspace& workspace);
void resilu2_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void gelu_forward(const Call& call, Launch& launch);
void gelu_backward(const Call& call, Launch& launch);
void gelu_composed_forward(const Call& call, Launch& launch);
void gelu_composed_backward(const Call& call, Launch& launch);
void silu_forward(const Call& call, Launch& launch);
void silu_backward(const Call& call, Launch& launch);
void tanh_forward(const Call& call, Launch& launch);
void tanh_backward(const Call& call, Launch& launch);
void sigmoid_forward(const Call& call, Launch& launch);
void sigmoid_backward(const Call& call, Launch& launch);
void relu_forward(const Call& call, Launch& launch);
void relu_backward(const Call& call, Launch& launch);
void regelu2_forward(const Call& call, Launch& launch);
void regelu2_backward(const Call& call, Launch& launch);
void resilu2_forward(const Call& call, Launch& launch);
void resilu2_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
