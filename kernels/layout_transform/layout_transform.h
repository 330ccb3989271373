// Ops that only move elements. call.moves[k] says where the elements of piece k are: target[i] =
// source[R(i)] (traces/layout_transform.h); not inverted, the op's input is the source and its
// output the target; inverted, the other way round.
//
//   Copy         forward and backward by moves[0]; what of dx has no target is 0
//   Select, Split  their forward is a view; backward: dx = the pieces' gradients, 0 elsewhere; an
//                absent piece's gradient is 0
//   Concat       input k is moves[k]'s piece, repeated along axes where it has one element;
//                backward: the gradient's part, summed over those axes; absent: it is shared memory
//   RepeatHeads  [b, h, …] → [b, h·g, …]: head j reads head j / g; backward sums the g copies
//
// Moved elements keep their bits, of any dtype; both sides have one dtype. Any strides. Sums are
// compensated (Kahan) in fp32 scratch of the gradient's size. Nothing overlaps.
#pragma once

#include "base/error.h"
#include "kernels/cpu/workspace.h"

namespace tidemark {

/// The array with its axis 1 divided into `outer` × the rest.
inline Array with_heads_divided(const Array& array, std::int64_t outer) {
  const std::size_t rank = array.shape.rank();
  CHECK(rank >= 2 && rank < Shape::max_rank);
  const std::int64_t inner = array.shape[1] / outer;
  std::array<std::int64_t, Shape::max_rank> dims{};
  Array result = array;
  for (std::size_t i = 0; i <= rank; ++i) {
    const std::size_t axis = i < 2 ? i : i - 1;
    dims[i] = i == 1 ? outer : i == 2 ? inner : array.shape[axis];
    result.strides[i] = i == 1 ? array.strides[1] * inner : array.strides[axis];
  }
  result.shape = Shape(std::span<const std::int64_t>(dims).first(rank + 1));
  return result;
}

}  // namespace tidemark

namespace tidemark::cpu {

void select_backward(const Call& call, Workspace& workspace);
void split_backward(const Call& call, Workspace& workspace);
void copy_forward(const Call& call, Workspace& workspace);
void copy_backward(const Call& call, Workspace& workspace);
void concat_forward(const Call& call, Workspace& workspace);
void concat_backward(const Call& call, Workspace& workspace);
void repeat_heads_forward(const Call& call, Workspace& workspace);
void repeat_heads_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void select_backward(const Call& call, Launch& launch);
void split_backward(const Call& call, Launch& launch);
void copy_forward(const Call& call, Launch& launch);
void copy_backward(const Call& call, Launch& launch);
void concat_forward(const Call& call, Launch& launch);
void concat_backward(const Call& call, Launch& launch);
void repeat_heads_forward(const Call& call, Launch& launch);
void repeat_heads_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
