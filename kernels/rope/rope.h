// Rotary position embedding as Hugging Face's transformers apply it: x [..., d], cos and sin
// [tokens, d] or [tokens, d / 2] → y of x's shape. With the halves x = (x1, x2) of a row:
//
//   y1 = x1 · cos1 − x2 · sin1,   y2 = x2 · cos2 + x1 · sin2
//   dx1 = dy1 · cos1 + dy2 · sin2,   dx2 = dy2 · cos2 − dy1 · sin1
//
// A table of d / 2 columns stands for both halves. settings.neighbours: x1 are the elements at even
// places, x2 those at odd ones, of tables, too. Row i of x, counted over its leading axes, reads
// row i modulo the table's rows: the tables repeat over batch and heads.
//
// * Any strides and data dtypes, mixed too; y never overlaps x. Saved: cos and sin. An absent dy
//   counts as zero. Computed in fp32, rounded once. NaN and infinity propagate as in the formula.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void rope_forward(const Call& call, Workspace& workspace);
void rope_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void rope_forward(const Call& call, Launch& launch);
void rope_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
