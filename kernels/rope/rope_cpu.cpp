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

template <typename Turn>
void turn_rows(const Array& cosine, const Array& sine, const Array& from, const Array& to,
               const Turn& turn_row, Workspace& workspace) {
  const std::int64_t d = from.shape.back(), half = d / 2, columns = cosine.shape.back();
  const std::int64_t second = columns == d ? half : 0;
  const auto width = static_cast<std::size_t>(d);
  float* const scratch = workspace.floats(4 * width, 0).data();
  for_rows(std::array{&from, &to}, [&](const auto& rows, std::int64_t i) {
    const float* const in = read(rows[0], d, scratch);
    float* const out = place(rows[1], scratch + width);
    const float* const c = read(nth_row(cosine, i), columns, scratch + 2 * width);
    const float* const s = read(nth_row(sine, i), columns, scratch + 3 * width);
    turn_row(in, Angles{c, c + second, s, s + second}, half, out);
    write(rows[1], d, out);
  });
}

}  // namespace

void rope_forward(const Call& call, Workspace& workspace) {
  turn_rows(call.inputs[1], call.inputs[2], call.inputs[0], call.outputs[0], turn, workspace);
}

void rope_backward(const Call& call, Workspace& workspace) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  if (!call.d_outputs[0]) return set_zero(dx);
  turn_rows(call.inputs[1], call.inputs[2], call.d_outputs[0], dx, turn_back, workspace);
}

}  // namespace tidemark::cpu
