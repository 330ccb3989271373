// Rotations whose pairs lie beside each other, as DeepSeek's code has them: x [..., d] of even d.
//
//   TurnPairs  x, waves [tokens, d] of (cos, sin) per pair → y: each pair (a, b) becomes
//              (a·cos − b·sin, a·sin + b·cos); row i of x reads row i modulo the table's rows.
//              Back: (da·cos + db·sin, db·cos − da·sin)
//   SortPairs  x → y: the first ones of all pairs, then the second ones. Back: the inverse
//
// Any strides and data dtypes; fp32 arithmetic, rounded once. An absent dy counts as zero.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void turn_pairs_forward(const Call& call, Workspace& workspace);
void turn_pairs_backward(const Call& call, Workspace& workspace);
void sort_pairs_forward(const Call& call, Workspace& workspace);
void sort_pairs_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void turn_pairs_forward(const Call& call, Launch& launch);
void turn_pairs_backward(const Call& call, Launch& launch);
void sort_pairs_forward(const Call& call, Launch& launch);
void sort_pairs_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
