// Layout transforms as strided walks, or as a transposition in tiles where both sides allow it.
#include "kernels/layout_transform/layout_transform.cuh"
#include "kernels/layout_transform/layout_transform.h"

namespace tidemark::cuda {
namespace {

enum class Towards : std::uint8_t { Target, Source };

std::int64_t stride_of(const Array& array, std::size_t axis) {
  return array.shape[axis] == 1 ? 0 : array.strides[axis];
}

/// What is walked: the array that is read, the one that is written, the place on a rolled grid.
struct Move {
  const Array *from, *to;
  Axes<3> axes;
  std::int64_t from_offset = 0, to_offset = 0;
  Roll roll;
};

Move move_of(const Rearrangement& r, const Array& source, const Array& target, Towards towards) {
  const bool is_written = towards == Towards::Source;  // the source is
  Move move{is_written ? &target : &source, is_written ? &source : &target, {}, 0, 0, {}};
  std::int64_t start = 0, place = 0;
  for (std::size_t i = 0; i < r.source.rank(); ++i)
    (r.grid_side != 0 && i == 1 ? place : start) +=
        r.start[i] * (r.grid_side != 0 && i == 1 ? 1 : stride_of(source, i));
  CHECK(place == 0);  // a rolled grid is whole
  (is_written ? move.to_offset : move.from_offset) = start;
  if (r.grid_side != 0)
    move.roll = {r.grid_side, (r.shift % r.grid_side + r.grid_side) % r.grid_side,
                 stride_of(source, 1), is_written};

  std::array<std::int64_t, Shape::max_rank> inner;
  inner.fill(1);
  std::array<std::array<std::int64_t, 3>, Axes<3>::most> strides{};
  CHECK(r.factors.size() <= strides.size());
  for (std::size_t k = r.factors.size(); k-- > 0;) {
    const Rearrangement::Factor& f = r.factors[k];
    const bool is_grid = r.grid_side != 0 && f.source_axis == 1;
    const std::int64_t of_source = is_grid ? 0 : f.step * stride_of(source, f.source_axis);
    const std::int64_t of_target = stride_of(target, f.target_axis) * inner[f.target_axis];
    strides[k] = {is_written ? of_target : of_source, is_written ? of_source : of_target,
                  is_grid ? f.step : 0};
    inner[f.target_axis] *= f.size;
  }
  for (std::size_t k = 0; k < r.factors.size(); ++k) move.axes.add(r.factors[k].size, strides[k]);
  // The rolled side's strides say nothing of its order: the other side leads.
  move.axes = merged(move.axes, r.grid_side != 0 && is_written ? 0 : 1);
  return move;
}

/// The axis that lies side by side in array `k`, or −1.
int contiguous_axis(const Axes<3>& axes, int k) {
  for (int i = 0; i < axes.rank; ++i)
    if (axes.stride[i][k] == 1) return i;
  return -1;
}

template <typename Raw>
void transpose(Launch& launch, const char* name, const Move& move, int read_axis,
               int written_axis) {
  Axes<3> outer;
  for (int i = 0; i < move.axes.rank; ++i)
    if (i != read_axis && i != written_axis) outer.add(move.axes, i);
  // Walked as rows of one element: every matrix is a row.
  outer.add(1, {0, 0, 0});
  const auto tiles_along = [&](int axis) {
    return (move.axes.extent[axis] + tile_side - 1) / tile_side;
  };
  const Tiles tiles{move.axes.extent[read_axis],
                    move.axes.stride[read_axis][1],
                    move.axes.extent[written_axis],
                    move.axes.stride[written_axis][0],
                    Divisor(tiles_along(read_axis)),
                    Divisor(tiles_along(written_axis)),
                    tiles_along(read_axis) * tiles_along(written_axis) * outer.count()};
  start(launch, name, transpose_kernel<Raw>, dim3(blocks_for(launch, tiles.count, 1)),
        dim3(tile_side, tile_rows), 0, elements<const Raw>(*move.from) + move.from_offset,
        elements<Raw>(*move.to) + move.to_offset, Walk<3>(outer, 1), tiles);
}

template <typename Raw>
void run_move(Launch& launch, const char* name, const Move& move) {
  constexpr int V = 16 / sizeof(Raw);
  const Axes<3>& axes = move.axes;
  const bool has_roll = move.roll.side != 0;
  const int read_axis = contiguous_axis(axes, 0), written_axis = contiguous_axis(axes, 1);
  // Narrow axes fill no tile; a plain walk does as well.
  constexpr std::int64_t narrow = 4;
  if (!has_roll && read_axis >= 0 && written_axis >= 0 && read_axis != written_axis &&
      axes.extent[read_axis] > narrow && axes.extent[written_axis] > narrow)
    return transpose<Raw>(launch, name, move, read_axis, written_axis);

  const std::int64_t size = sizeof(Raw);
  Array from = *move.from, to = *move.to;
  from.data += move.from_offset * size, to.data += move.to_offset * size;
  const Array places{nullptr, DType::Float32, {}, {}};
  bool vectors = axes.rank > 0 && axes.stride[axes.rank - 1][0] == 1 &&
                 axes.stride[axes.rank - 1][1] == 1 && axes.stride[axes.rank - 1][2] == 0 &&
                 axes.extent[axes.rank - 1] % V == 0 &&
                 is_vectorizable<3>(axes, {&from, &to, &places}, V);
  if (has_roll) vectors = vectors && move.roll.stride % V == 0;
  const Walk<3> walk(axes, vectors ? V : 1);
  const auto kernel = has_roll
                          ? (vectors ? move_kernel<Raw, V, true> : move_kernel<Raw, 1, true>)
                          : (vectors ? move_kernel<Raw, V, false> : move_kernel<Raw, 1, false>);
  start(launch, name, kernel, dim3(blocks_for(launch, walk.vectors)), dim3(usual_threads), 0,
        elements<const Raw>(from), elements<Raw>(to), walk, move.roll);
}

void run_move(Launch& launch, const char* name, const Move& move) {
  CHECK(move.from->dtype == move.to->dtype);
  switch (size_of(move.from->dtype)) {
    case 1:
      return run_move<std::uint8_t>(launch, name, move);
    case 2:
      return run_move<std::uint16_t>(launch, name, move);
    case 4:
      return run_move<std::uint32_t>(launch, name, move);
    default:
      return run_move<std::uint64_t>(launch, name, move);
  }
}

void move_forward(Launch& launch, const char* name, const Rearrangement& r, const Array& input,
                  const Array& output) {
  if (numel(r.target) == 0) return;
  run_move(launch, name,
           r.inverted ? move_of(r, output, input, Towards::Source)
                      : move_of(r, input, output, Towards::Target));
}

/// The same elements, the other way round.
void move_backward(Launch& launch, const char* name, const Rearrangement& r, const Array& d_input,
                   const Array& d_output) {
  if (numel(r.target) == 0) return;
  run_move(launch, name,
           r.inverted ? move_of(r, d_output, d_input, Towards::Target)
                      : move_of(r, d_input, d_output, Towards::Source));
}

/// dx = the pieces' gradients where there are any, else 0.
void pieces_backward(const Call& call, Launch& launch, const char* name) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  std::int64_t covered = 0;
  for (const Array& piece : call.d_outputs)
    if (piece) covered += numel(piece.shape);
  if (covered < numel(dx.shape)) fill_with(launch, dx, 0);
  for (std::size_t k = 0; k < call.moves.size(); ++k)
    if (call.d_outputs[k]) move_backward(launch, name, call.moves[k], dx, call.d_outputs[k]);
}

}  // namespace

void copy_forward(const Call& call, Launch& launch) {
  move_forward(launch, "copy", call.moves[0], call.inputs[0], call.outputs[0]);
}
void copy_backward(const Call& call, Launch& launch) {
  pieces_backward(call, launch, "copy backward");
}
void select_backward(const Call& call, Launch& launch) {
  pieces_backward(call, launch, "select backward");
}
void split_backward(const Call& call, Launch& launch) {
  pieces_backward(call, launch, "split backward");
}

void concat_forward(const Call& call, Launch& launch) {
  for (std::size_t k = 0; k < call.inputs.size(); ++k)
    move_forward(launch, "concat", call.moves[k], call.inputs[k], call.outputs[0]);
}

void concat_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  for (std::size_t k = 0; k < call.d_inputs.size(); ++k) {
    const Array& dx = call.d_inputs[k];
    const Rearrangement& r = call.moves[k];
    if (!dx) continue;
    if (!dy) {
      fill_with(launch, dx, 0);
    } else if (numel(dx.shape) == numel(r.target)) {
      move_backward(launch, "concat backward", r, dx, dy);
    } else {
      const std::optional<Layout> piece = back_through_view(r, dy.layout());
      CHECK(piece.has_value());  // a slice along one axis always has strides
      const Array d_piece = array_at(dy.data, dy.dtype, *piece);
      reduce(launch, "concat backward", Identity{}, d_piece.shape, {&d_piece}, dx);
    }
  }
}

void repeat_heads_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  if (numel(y.shape) == 0) return;
  const Array from = with_heads_divided(x, x.shape[1]), to = with_heads_divided(y, x.shape[1]);
  Move move{&from, &to, {}, 0, 0, {}};
  for (std::size_t i = 0; i < to.shape.rank(); ++i)
    move.axes.add(to.shape[i], {stride_of(from, i), to.strides[i], 0});
  move.axes = merged(move.axes, 1);
  run_move(launch, "repeat_heads", move);
}

void repeat_heads_backward(const Call& call, Launch& launch) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  const std::int64_t heads = dx.shape[1];
  const Array from = with_heads_divided(dy, heads), to = with_heads_divided(dx, heads);
  summed_to(launch, "repeat_heads backward", Identity{}, from.shape, {&from}, to);
}

}  // namespace tidemark::cuda
