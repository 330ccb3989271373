// Embedding: ids [...] of int64, table [rows, width] → y [..., width], y[i] = table[ids[i]].
//
// * Backward, from the saved ids: dtable[r] = Σ dy[i] over all i with ids[i] = r, in the order of
//   i, in fp32, rounded once; rows that no id names are zero. An absent dy counts as zero.
// * Any strides and data dtypes; outputs never overlap inputs. An id outside the table is an
//   InputError that names it. Forward is exact where dtypes agree. NaN and infinity are copied.
// * Scratch of the backward for 16-bit tables: 8 bytes for each id and each row.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void embedding_forward(const Call& call, Workspace& workspace);
void embedding_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void embedding_forward(const Call& call, Launch& launch);
void embedding_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
