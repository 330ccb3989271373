// Turns row after row by its angles: forward, and back by the transposed rotation.
#include "kernels/cpu/clones.h"
#include "kernels/cpu/sums.h"
#include "kernels/rope/rope.h"

namespace tidemark::cpu {
namespace {

/// Of one row: the tables for its first and its second half.
struct Angles {
  const float *cos1, *cos2, *sin1, *sin2;
};

TIDEMARK_CLONES void turn(const float* __restrict x, const Angles& angles, std::int64_t half,
                          float* __restrict y) {
  const auto [cos1, cos2, sin1, sin2] = angles;
  for (std::int64_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos1[i] - x[half + i] * sin1[i];
    y[half + i] = x[half + i] * cos2[i] + x[i] * sin2[i];
  }
}

TIDEMARK_CLONES void turn_back(const float* __restrict dy, const Angles& angles, std::int64_t half,
                               float* __restrict dx) {
  const auto [cos1, cos2, sin1, sin2] = angles;
  for (std::int64_t i = 0; i < half; ++i) {
    dx[i] = dy[i] * cos1[i] + dy[half + i] * sin2[i];
    dx[half + i] = dy[half + i] * cos2[i] - dy[i] * sin1[i];
  }
}

/// Even places of a row, then odd ones: the halves of rows whose neighbours turn.
void to_halves(const float* row, std::int64_t n, float* halves) {
  for (std::int64_t i = 0; i < n; ++i) halves[i % 2 * (n / 2) + i / 2] = row[i];
}

void to_neighbours(const float* halves, std::int64_t n, float* row) {
  for (std::int64_t i = 0; i < n; ++i) row[i] = halves[i % 2 * (n / 2) + i / 2];
}

/// A row as its halves, which lie in `scratch` if they are not the row itself.
const float* halves_of(const Run& row, std::int64_t n, bool neighbours, float* scratch) {
  const float* const values = read(row, n, scratch);
  if (!neighbours) return values;
  to_halves(values, n, scratch + n);
  return scratch + n;
}

template <typename Turn>
void turn_rows(const Call& call, const Array& from, const Array& to, const Turn& turn_row,
               Workspace& workspace) {
  const Array &cosine = call.inputs[1], &sine = call.inputs[2];
  const std::int64_t d = from.shape.back(), half = d / 2, columns = cosine.shape.back();
  const std::int64_t second = columns == d ? half : 0;
  const bool neighbours = call.settings.neighbours, are_tables = neighbours && second > 0;
  const auto room = static_cast<std::size_t>(2 * d);
  float* const scratch = workspace.floats(4 * room, 0).data();
  for_rows(std::array{&from, &to}, [&](const auto& rows, std::int64_t i) {
    const float* const in = halves_of(rows[0], d, neighbours, scratch);
    const float* const c = halves_of(nth_row(cosine, i), columns, are_tables, scratch + 2 * room);
    const float* const s = halves_of(nth_row(sine, i), columns, are_tables, scratch + 3 * room);
    float* const out = place(rows[1], scratch + room);
    float* const turned = neighbours ? scratch + room + d : out;
    turn_row(in, Angles{c, c + second, s, s + second}, half, turned);
    if (neighbours) to_neighbours(turned, d, out);
    write(rows[1], d, out);
  });
}

}  // namespace

void rope_forward(const Call& call, Workspace& workspace) {
  turn_rows(call, call.inputs[0], call.outputs[0], turn, workspace);
}

void rope_backward(const Call& call, Workspace& workspace) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  if (!call.d_outputs[0]) return set_zero(dx);
  turn_rows(call, call.d_outputs[0], dx, turn_back, workspace);
}

}  // namespace tidemark::cpu
