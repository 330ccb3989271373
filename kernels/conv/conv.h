// Convolution: x [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] or absent → y [n, o, h',
// w'] with h' = (h + 2·padding − kh) / stride + 1, likewise w'. Settings: stride, padding, groups.
//
//   y[n, o, i, j] = bias[o] + Σ x[n, c, i·stride + u − padding, j·stride + v − padding] · weight[o,
//   c, u, v]
//
// over the channels c of o's group; x is 0 outside.
//
// * Saved: x where the weight's gradient is wanted, the weight where x's is. An absent gradient of
//   the output counts as zero.
// * Any strides and data dtypes; outputs never overlap inputs. Sums are fp32, over images too, and
//   rounded once. Tolerance as for linear.
// * On the CPU: patches as columns of a matrix, 4 MiB at a time, times the weight; where every
//   channel is a group of its own, directly. Scratch beside the columns: one group's channels of
//   one image, and its weight, in fp32.
// * NaN and infinity propagate as in the sums; beside an infinite weight, the zeros of the padding
//   give NaN, as in PyTorch.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void conv2d_forward(const Call& call, Workspace& workspace);
void conv2d_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void conv2d_forward(const Call& call, Launch& launch);
void conv2d_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
