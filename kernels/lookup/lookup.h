// Rows and elements by their numbers, of values that have a gradient.
//
//   IndexRows  x [n, w], places [m] or [m, 2] (the first counts) → y[i] = x[places[i]]
//              dx[r] = Σ dy[i] over all i that name r: an embedding whose table is x
//   Gather     x [...], places [...] → y of the places' shape: x's element at the place along the
//              axis Settings::axis. dx = Σ of the dy that took it
//
// Any strides and data dtypes; sums in fp32 in the order of the places, rounded once. An absent dy
// counts as zero. A place outside is an InputError; on a GPU it stops the stream.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void index_rows_forward(const Call& call, Workspace& workspace);
void index_rows_backward(const Call& call, Workspace& workspace);
void gather_forward(const Call& call, Workspace& workspace);
void gather_backward(const Call& call, Workspace& workspace);

/// dx = Σ dy along `axis` at the places that dy was read from; absent dy = zero. Takes the
/// workspace's piece 0.
void add_back(const Array& dx, const Array& places, const Array& dy, std::size_t axis,
              Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void index_rows_forward(const Call& call, Launch& launch);
void index_rows_backward(const Call& call, Launch& launch);
void gather_forward(const Call& call, Launch& launch);
void gather_backward(const Call& call, Launch& launch);
void add_back(Launch& launch, const Array& dx, const Array& places, const Array& dy,
              std::size_t axis);

}  // namespace tidemark::cuda
