// Convolution along one axis: x [n, c, length], weight [o, c, k], bias [o] or absent → y [n, o, l']
// with l' = (length + 2·padding − k) / stride + 1. Settings: stride, padding.
//
//   y[n, o, i] = bias[o] + Σ x[n, c, i·stride + u − padding] · weight[o, c, u], x being 0 outside
//
// * Saved: x and the weight. An absent gradient of the output counts as zero.
// * Any strides and data dtypes. Sums in fp32, rounded once. Tolerance as for linear.
// * On the CPU the convolution of planes of one row, over a copy of x with its zeros (scratch of
// x's
//   size). CUDA: one thread per number, without tensor cores.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void conv1d_forward(const Call& call, Workspace& workspace);
void conv1d_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void conv1d_forward(const Call& call, Launch& launch);
void conv1d_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
