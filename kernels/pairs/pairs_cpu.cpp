// Pairs row by row in scratch; see pairs.h.
#include "kernels/cpu/map.h"
#include "kernels/cpu/sums.h"
#include "kernels/pairs/pairs.h"

namespace tidemark::cpu {
namespace {

/// Calls body(values, result, row) for each row of both arrays, in fp32.
template <typename Body>
void for_row_pairs(const Array& from, const Array& to, Workspace& workspace, Body&& body) {
  const std::int64_t n = from.shape.back();
  float* const values = workspace.floats(static_cast<std::size_t>(2 * n)).data();
  for_rows(std::array{&from, &to}, [&](const auto& rows, std::int64_t i) {
    gather(rows[0], n, values);
    body(values, values + n, i);
    scatter(values + n, n, rows[1]);
  });
}

/// By the angle, or back.
void turn(const Array& from, const Array& waves, const Array& to, float direction,
          Workspace& workspace) {
  const std::int64_t n = from.shape.back(), tokens = numel(waves.shape) / n;
  float* const wave = workspace.floats(static_cast<std::size_t>(n), 1).data();
  for_row_pairs(from, to, workspace, [&](const float* x, float* y, std::int64_t row) {
    gather(nth_row(waves, row % tokens), n, wave);
    for (std::int64_t i = 0; i < n; i += 2) {
      const float cosine = wave[i], sine = direction * wave[i + 1];
      y[i] = x[i] * cosine - x[i + 1] * sine;
      y[i + 1] = x[i] * sine + x[i + 1] * cosine;
    }
  });
}

void sort(const Array& from, const Array& to, bool is_back, Workspace& workspace) {
  const std::int64_t half = from.shape.back() / 2;
  for_row_pairs(from, to, workspace, [&](const float* x, float* y, std::int64_t) {
    for (std::int64_t i = 0; i < half; ++i)
      for (const std::int64_t k : {0, 1})
        (is_back ? y[2 * i + k] : y[k * half + i]) = is_back ? x[k * half + i] : x[2 * i + k];
  });
}

}  // namespace

void turn_pairs_forward(const Call& call, Workspace& workspace) {
  turn(call.inputs[0], call.inputs[1], call.outputs[0], 1, workspace);
}

void turn_pairs_backward(const Call& call, Workspace& workspace) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  turn(call.d_outputs[0], call.inputs[1], call.d_inputs[0], -1, workspace);
}

void sort_pairs_forward(const Call& call, Workspace& workspace) {
  sort(call.inputs[0], call.outputs[0], false, workspace);
}

void sort_pairs_backward(const Call& call, Workspace& workspace) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  sort(call.d_outputs[0], call.d_inputs[0], true, workspace);
}

}  // namespace tidemark::cpu
