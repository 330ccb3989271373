// Dropout and stochastic depth. Random numbers follow from (seed, step number, key, element) alone
// (kernels/philox.h), so that a second forward drops the same elements. p = settings.probability.
//
//   Dropout   x → y, mask   element i in row-major order is kept if uniform_at(…, i) > p;
//             mask (Bool) says which; y = x/(1 − p) where kept, x·0 elsewhere, so that NaN stays
//   DropPath  x → y, mask   the same for sample i, with one mask element of 0 or 1/(1 − p), in the
//             mask's dtype, for each; y = x·mask. A mask of fewer elements than x's first axis has
//             each of them stand for equally many entries in a row.
//
// Backward: dx = dy·mask (Dropout: /(1 − p)); reads the mask. Any strides and data dtypes; one
// rounding. p = 1 drops everything. Nothing overlaps.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void dropout_forward(const Call& call, Workspace& workspace);
void dropout_backward(const Call& call, Workspace& workspace);
void drop_path_forward(const Call& call, Workspace& workspace);
void drop_path_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void dropout_forward(const Call& call, Launch& launch);
void dropout_backward(const Call& call, Launch& launch);
void drop_path_forward(const Call& call, Launch& launch);
void drop_path_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
