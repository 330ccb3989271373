// Ops that only move elements, on the CPU; see layout_transform.h.
#include "base/error.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/layout_transform/layout_transform.h"

namespace tidemark::cpu {
namespace {

using Factor = Rearrangement::Factor;

/// One factor with the strides that it walks in both arrays, in elements.
struct Walk {
  std::int64_t size, source, target;
  std::int64_t grid_step;  ///< places along a rolled grid; 0 = not part of it
};

std::int64_t stride_of(const Array& array, std::size_t axis) {
  return array.shape[axis] == 1 ? 0 : array.strides[axis];
}

/// How a rearrangement lies in two arrays.
struct Placement {
  Placement(const Rearrangement& move, const Array& source, const Array& target) {
    CHECK(source.dtype == target.dtype && move.factors.size() <= walks.size());
    for (std::size_t i = 0; i < move.source.rank(); ++i)
      if (i != 1 || move.grid_side == 0) start += move.start[i] * stride_of(source, i);
    std::array<std::int64_t, Shape::max_rank> inner;
    inner.fill(1);
    for (std::size_t k = move.factors.size(); k-- > 0;) {
      const Factor& f = move.factors[k];
      const bool is_grid = move.grid_side != 0 && f.source_axis == 1;
      walks[k] = {f.size, is_grid ? 0 : f.step * stride_of(source, f.source_axis),
                  stride_of(target, f.target_axis) * inner[f.target_axis], is_grid ? f.step : 0};
      inner[f.target_axis] *= f.size;
    }
    count = move.factors.size();
  }
  std::array<Walk, CopyAxes::most> walks{};
  std::size_t count = 0;
  std::int64_t start = 0;  ///< offset in the source
};

/// Copies between the two, towards the target or, if `back`, towards the source.
class Mover {
 public:
  Mover(const Rearrangement& move, const Array& source, const Array& target, bool back)
      : move_(move), source_(source), target_(target), back_(back), at_(move, source, target) {
    for (std::size_t k = 0; k < at_.count; ++k) {
      const Walk& walk = at_.walks[k];
      if (walk.grid_step != 0)
        grid_[grid_rank_++] = walk;
      else if (back)
        axes_.add(walk.size, walk.source, walk.target);
      else
        axes_.add(walk.size, walk.target, walk.source);
    }
    axes_.simplify();
  }

  void run() {
    if (numel(move_.target) == 0) return;
    if (move_.grid_side == 0) return copy(at_.start, 0);
    walk_grid(0, move_.start[1], 0);
  }

 private:
  void copy(std::int64_t source_offset, std::int64_t target_offset) const {
    const std::int64_t size = size_of(source_.dtype);
    std::byte* const source = source_.data + source_offset * size;
    std::byte* const target = target_.data + target_offset * size;
    strided_copy(back_ ? source : target, back_ ? target : source, size, axes_);
  }

  // Place (y, x) of the grid is read from (y + shift, x + shift), cyclic.
  void walk_grid(std::size_t k, std::int64_t place, std::int64_t target_offset) const {
    if (k < grid_rank_) {
      for (std::int64_t i = 0; i < grid_[k].size; ++i)
        walk_grid(k + 1, place + i * grid_[k].grid_step, target_offset + i * grid_[k].target);
      return;
    }
    const std::int64_t side = move_.grid_side;
    const auto rolled = [&](std::int64_t i) { return ((i + move_.shift) % side + side) % side; };
    const std::int64_t from = rolled(place / side) * side + rolled(place % side);
    copy(at_.start + from * stride_of(source_, 1), target_offset);
  }

  const Rearrangement& move_;
  const Array &source_, &target_;
  const bool back_;
  const Placement at_;
  CopyAxes axes_;
  std::array<Walk, CopyAxes::most> grid_{};
  std::size_t grid_rank_ = 0;
};

/// From the op's input to its output.
void move_forward(const Rearrangement& move, const Array& input, const Array& output) {
  if (move.inverted)
    Mover(move, output, input, true).run();
  else
    Mover(move, input, output, false).run();
}

/// From the gradient of the output to that of the input: the same elements, the other way round.
void move_backward(const Rearrangement& move, const Array& d_input, const Array& d_output) {
  if (move.inverted)
    Mover(move, d_output, d_input, false).run();
  else
    Mover(move, d_input, d_output, true).run();
}

// dx = the pieces' gradients where there are any.
void pieces_backward(const Call& call) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  std::int64_t covered = 0;
  for (std::size_t k = 0; k < call.moves.size(); ++k)
    if (call.d_outputs[k]) covered += numel(call.d_outputs[k].shape);
  if (covered < numel(dx.shape)) set_zero(dx);
  for (std::size_t k = 0; k < call.moves.size(); ++k)
    if (call.d_outputs[k]) move_backward(call.moves[k], dx, call.d_outputs[k]);
}

/// Where `from` has one element along an axis, `to` has that again and again.
void copy_again(const Array& to, const Array& from) {
  CHECK(from.dtype == to.dtype);
  CopyAxes axes;
  for (std::size_t i = 0; i < to.shape.rank(); ++i)
    axes.add(to.shape[i], to.strides[i], stride_of(from, i));
  axes.simplify();
  if (numel(to.shape) != 0) strided_copy(to.data, from.data, size_of(from.dtype), axes);
}

/// The slice of a concatenation where a piece lies.
Array piece_of(const Array& whole, const Rearrangement& move) {
  const std::optional<Layout> piece = back_through_view(move, whole.layout());
  CHECK(piece.has_value());  // a slice along one axis always has strides
  return array_at(whole.data, whole.dtype, *piece);
}

}  // namespace

void copy_forward(const Call& call, Workspace&) {
  move_forward(call.moves[0], call.inputs[0], call.outputs[0]);
}
void copy_backward(const Call& call, Workspace&) { pieces_backward(call); }
void select_backward(const Call& call, Workspace&) { pieces_backward(call); }
void split_backward(const Call& call, Workspace&) { pieces_backward(call); }

// The pieces may have another dtype than the whole: autocast joins 16-bit patches to an fp32 token.
// Others are moved as they are, whole numbers, too.
void concat_forward(const Call& call, Workspace&) {
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const Array& from = call.inputs[k];
    const Array to = piece_of(call.outputs[0], call.moves[k]);
    if (from.dtype != to.dtype)
      assign(to, from);
    else
      copy_again(to, from);
  }
}

void concat_backward(const Call& call, Workspace& workspace) {
  const Array& dy = call.d_outputs[0];
  for (std::size_t k = 0; k < call.d_inputs.size(); ++k) {
    const Array& dx = call.d_inputs[k];
    if (!dx) continue;
    if (!dy) {
      set_zero(dx);
      continue;
    }
    assign_sum(dx, piece_of(dy, call.moves[k]), workspace);
  }
}

void repeat_heads_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  copy_again(with_heads_divided(y, x.shape[1]), with_heads_divided(x, x.shape[1]));
}

void repeat_heads_backward(const Call& call, Workspace& workspace) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return set_zero(dx);
  const std::int64_t heads = dx.shape[1];
  const Array from = with_heads_divided(dy, heads), to = with_heads_divided(dx, heads);
  assign_sum(to, from, workspace);
}

}  // namespace tidemark::cpu
