// mean_pool: x [b, ..., c] → y [b, c], the mean over the axes between; dx = dy / their number.
// max_pool:  x [n, c, h, w] → y [n, c, h', w'] and optionally the int64 place of each maximum
//   within its plane, row · w + column. Settings: window (of both axes), stride, padding;
//   h' as for a convolution. What lies in the padding is never a maximum.
//
// * max_pool's dx is zero but for the sum of the dy whose maximum stands there, from the saved
//   places; added in fp32 in the order of the windows. Of equal values the first counts; a NaN
//   counts as larger than all, the last one of a window wins, as in PyTorch.
// * Any strides and data dtypes; outputs never overlap inputs. An absent dy counts as zero. The
//   mean is summed in fp32 in pieces and rounded once; max_pool's forward is exact.
// * Scratch: one row of x, and for max_pool's backward one plane in fp32.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void mean_pool_forward(const Call& call, Workspace& workspace);
void mean_pool_backward(const Call& call, Workspace& workspace);
void max_pool_forward(const Call& call, Workspace& workspace);
void max_pool_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void mean_pool_forward(const Call& call, Launch& launch);
void mean_pool_backward(const Call& call, Launch& launch);
void max_pool_forward(const Call& call, Launch& launch);
void max_pool_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
