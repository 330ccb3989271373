// Rows by the experts that they go to, and back (DeepSeek-V2's code): what sorts, joins and puts
// back.
//
//   HiddenGroups  shares [rows, n] → mask of bool: 1 in the groups (Settings::groups of them along
//   n)
//                 of which EvenTopK picks none of the row's Settings::window
//   MaskedFill    x, mask of bool that spreads over it → Settings::factor where the mask is 1, else
//   x;
//                 dx = dy where it is 0
//   Argsort       x of int64 or numbers, along its last axis, or as one row where y has one axis →
//                 places of its elements in ascending order, equal ones as they stand; output 1, if
//                 there, the elements in that order
//   FloorDivide   places → places / Settings::window
//   JoinRows      pieces [m, w] → y [n, w]: one behind the other from row Settings::offset on;
//   where
//                 input 0 is y's own memory, that is no piece. dpiece = its rows of dy
//   PutRows       x [n, w], places [n] → y[places[i]] = x[i], none named twice; dx[i] =
//   dy[places[i]] MulKept       y, b, kept copy of y → kept · b, where y lies; dy' = dy·b, db = Σ
//   dy·kept
//
// Any strides and data dtypes; exact, but for MulKept, which is Mul. An absent dy counts as zero.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark {

/// Input `i` of a JoinRows is a piece?
inline bool is_piece(const Call& call, std::size_t i) {
  return i > 0 || call.inputs[0].shape != call.outputs[0].shape || call.inputs.size() == 1;
}

/// Rows [first, first + m) of an array.
inline Array rows_from(const Array& rows, std::int64_t first, std::int64_t count) {
  Array part = rows;
  if (part) part.data += first * rows.strides[0] * size_of(rows.dtype);
  part.shape = Shape{count, rows.shape[1]};
  return part;
}

}  // namespace tidemark

namespace tidemark::cpu {

void hidden_groups_forward(const Call& call, Workspace& workspace);
void masked_fill_forward(const Call& call, Workspace& workspace);
void masked_fill_backward(const Call& call, Workspace& workspace);
void argsort_forward(const Call& call, Workspace& workspace);
void floor_divide_forward(const Call& call, Workspace& workspace);
void join_rows_forward(const Call& call, Workspace& workspace);
void join_rows_backward(const Call& call, Workspace& workspace);
void put_rows_forward(const Call& call, Workspace& workspace);
void put_rows_backward(const Call& call, Workspace& workspace);
void mul_kept_forward(const Call& call, Workspace& workspace);
void mul_kept_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void hidden_groups_forward(const Call& call, Launch& launch);
void masked_fill_forward(const Call& call, Launch& launch);
void masked_fill_backward(const Call& call, Launch& launch);
void argsort_forward(const Call& call, Launch& launch);
void floor_divide_forward(const Call& call, Launch& launch);
void join_rows_forward(const Call& call, Launch& launch);
void join_rows_backward(const Call& call, Launch& launch);
void put_rows_forward(const Call& call, Launch& launch);
void put_rows_backward(const Call& call, Launch& launch);
void mul_kept_forward(const Call& call, Launch& launch);
void mul_kept_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
