// Mesa's activations in 8 bits (arXiv 2111.11124 and its released code), or in 4 or 2. A group is a
// stretch of extent / groups indices along group_axis of the value, common to all other axes.
//
//   Quantize    inputs {value}, outputs {codes}. Per group r = max − min and m = min of the value;
//               the running range becomes (r, m) at step 0, later 0.9·old + 0.1·(r, m), once per
//               micro-batch. Then
//               code = rn(max((x − m)·L/r + d, 0)), d = rounding_at(seed, step, key, i) of
//               kernels/stochastic_rounding.h: right on average. L = 2^bits − 1, the largest code.
//               Clipped to it, or with `wraps` reduced modulo 2^bits as the released kernel does
//               (up to 2^22, which stands for anything larger).
//               The range of the value itself counts, so codes need a pass of their own; minimum
//               and maximum do not where the kernel that wrote the value has noted them.
//   delayed     Not Mesa's, which codes by the range that this step's extremes have moved: by the
//               range as it stood when the last step ended, so that one pass is enough, and none
//               where the kernel that wrote the value has written the codes in passing (has_codes).
//               d is dither (kernels/dither.h), and what lies beyond the range is clipped. At step
//               0, where there is no range yet: the exact one of the value, in two passes.
//   MoveRange   inputs {an array of the value's dtype}. What the last micro-batch has noted moves
//               the running range by its tenth and is forgotten: once per micro-batch, before
//               anything of it is noted. At step 0 it is only forgotten.
//   Dequantize  inputs {codes}, outputs {value}: x = code·r/L + m by the same range. The
//               backward of norms, activations, softmax and products decodes the same way what it
//               saved, while it loads it.
//
// Codes lie densely in the value's row-major order (kernels/groups.h), i is the place in it; the
// value may have any strides and data dtype. fp32 arithmetic.
// A constant group (r = 0) decodes to m. NaN or ±∞ in a group makes its range and all that is
// decoded by them NaN, so that the fault shows; its codes are defined (0 where x is NaN).
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void quantize(const Call& call, Workspace& workspace);
void move_range(const Call& call, Workspace& workspace);
void dequantize(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void quantize(const Call& call, Launch& launch);
void move_range(const Call& call, Launch& launch);
void dequantize(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
