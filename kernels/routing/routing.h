// How tokens find their experts, at an even load: what a router's shares would pick is known at run
// time only, and a plan has as many tokens for each expert. So the picks are dealt out in turn;
// what is computed of them is what any picks would give.
//
//   EvenTopK    x [rows, n] → values [rows, k], places [rows, k], or places alone
//               places[r, s] = (r·k + s) mod n; values[r, s] = x[r, places[r, s]]
//               dx is zero but for dvalues at the saved places
//   OneHot      places [..., k] → y [..., k, n] of int64: 1 where the last index is the place
//   FindVisits  chosen [tokens, k, n] → y [visits, 2]: (token, slot) of each that is 1 at the
//               expert Settings::offset, in row-major order. Another number of them than y has rows
//               for is an InputError; on a GPU it stops the stream
//   IndexPairs  x [n, k], places [visits, 2] → y[i] = x[places[i, 0], places[i, 1]]
//               dx is zero but for dy at the places, none of which is named twice
//   IndexAdd    sum [n, w], places [m] or [m, 2] (the first counts), y [m, w]: sum[places[i]] +=
//               y[i], where sum lies; none is named twice. dy[i] = dsum[places[i]]
//
// Any strides and data dtypes. An absent gradient of the output counts as zero. Exact but for
// IndexAdd, which rounds once. A place outside is an InputError; on a GPU it stops the stream.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark {

/// Places [m] or [m, 2] → those of rows, [m].
inline Array row_numbers(const Array& places) {
  return {places.data, places.dtype, Shape{places.shape[0]}, {places.strides[0]}};
}

}  // namespace tidemark

namespace tidemark::cpu {

void even_top_k_forward(const Call& call, Workspace& workspace);
void even_top_k_backward(const Call& call, Workspace& workspace);
void one_hot_forward(const Call& call, Workspace& workspace);
void find_visits_forward(const Call& call, Workspace& workspace);
void index_pairs_forward(const Call& call, Workspace& workspace);
void index_pairs_backward(const Call& call, Workspace& workspace);
void index_add_forward(const Call& call, Workspace& workspace);
void index_add_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void even_top_k_forward(const Call& call, Launch& launch);
void even_top_k_backward(const Call& call, Launch& launch);
void one_hot_forward(const Call& call, Launch& launch);
void find_visits_forward(const Call& call, Launch& launch);
void index_pairs_forward(const Call& call, Launch& launch);
void index_pairs_backward(const Call& call, Launch& launch);
void index_add_forward(const Call& call, Launch& launch);
void index_add_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
