// Elementwise arithmetic with broadcasting, any strides and data dtypes: fp32 arithmetic, one
// rounding to the output's dtype.
//
//   Add      y = a + b          da = dy, summed over the axes where a is repeated; db likewise
//   Mul      y = a · b          da = Σ dy·b, db = Σ dy·a
//   Scale    y = factor · x     dx = factor · dy; output 1, if it is there, is the factor (fp64)
//   Average  y = Σ inputs / n   each dx = dy / n
//   Cast     y = x              dx = dy
//
// Shapes are aligned at their ends; an axis of one element, or a missing one, repeats. Sums over
// The backward of Mul reads codes as well as values (array.h). Sums over
// repeated axes are compensated (Kahan) in fp32 scratch of the gradient's size. Nothing overlaps.
// Tolerance: one rounding (Average: n); sums 2 ulp of Σ|terms| in fp32. NaN and infinities as in
// IEEE arithmetic.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void add_forward(const Call& call, Workspace& workspace);
void add_backward(const Call& call, Workspace& workspace);
void mul_forward(const Call& call, Workspace& workspace);
void mul_backward(const Call& call, Workspace& workspace);
void scale_forward(const Call& call, Workspace& workspace);
void scale_backward(const Call& call, Workspace& workspace);
void average_forward(const Call& call, Workspace& workspace);
void average_backward(const Call& call, Workspace& workspace);
void cast_forward(const Call& call, Workspace& workspace);
void cast_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void add_forward(const Call& call, Launch& launch);
void add_backward(const Call& call, Launch& launch);
void mul_forward(const Call& call, Launch& launch);
void mul_backward(const Call& call, Launch& launch);
void scale_forward(const Call& call, Launch& launch);
void scale_backward(const Call& call, Launch& launch);
void average_forward(const Call& call, Launch& launch);
void average_backward(const Call& call, Launch& launch);
void cast_forward(const Call& call, Launch& launch);
void cast_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
