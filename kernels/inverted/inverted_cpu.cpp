// Sides are packed and unpacked run by run; the slope is a loop of its own that becomes vector
// code; see inverted.h.
#include <cmath>

#include "base/error.h"
#include "kernels/activation/activation_loops.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/map.h"
#include "kernels/inverted/inverted.h"
#include "kernels/inverted/slopes.h"

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES void side_loop(std::int64_t n, std::uint8_t* __restrict side,
                               const float* __restrict x, float minimum) {
  for (std::int64_t i = 0; i < n; ++i) side[i] = x[i] > minimum ? 1 : 0;
}

// dx = dy·slope. Both sides are computed, and one is selected.
TIDEMARK_CLONES void slope_loop(std::int64_t n, float* __restrict dx, const float* __restrict dy,
                                const float* __restrict y, const std::uint8_t* __restrict side,
                                const SlopeOfValue& f) {
  const float per_left = 2.0f / std::sqrt(f.zero), per_right = 4.0f / f.end;
  for (std::int64_t i = 0; i < n; ++i) {
    const float above = y[i] - f.lowest;
    const float t = std::sqrt(above < 0.0f ? 0.0f : above);  // NaN passes
    const float rest = f.zero - t;
    const float left = std::sqrt(rest < 0.0f ? 0.0f : rest) * per_left - 1.0f;
    const float right = t * per_right;
    const float half = right < 2.0f ? 1.0f : 3.0f;
    const float z = side[i] == 0 ? left : right - half;
    float slope = 0.0f;
    for (int k = 9; k >= 0; --k) {
      const float c = side[i] == 0 ? f.left[k] : half < 2.0f ? f.right[0][k] : f.right[1][k];
      slope = slope * z + c;
    }
    dx[i] = dy[i] * (side[i] != 0 && t > f.end ? 1.0f : slope);
  }
}

// Elements [first, first + n) of the bits. Bytes are begun by their first element.
void pack(const std::uint8_t* sides, std::int64_t first, std::int64_t n, std::uint8_t* packed) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint8_t& byte = packed[(first + i) / 8];
    const auto place = (first + i) % 8;
    byte = static_cast<std::uint8_t>((place == 0 ? 0 : byte) | sides[i] << place);
  }
}
void unpack(const std::uint8_t* packed, std::int64_t first, std::int64_t n, std::uint8_t* sides) {
  for (std::int64_t i = 0; i < n; ++i) sides[i] = packed[(first + i) / 8] >> ((first + i) % 8) & 1;
}

void forward(const Call& call, const SlopeOfValue& f, UnaryLoop loop) {
  const Array &x = call.inputs[0], &y = call.outputs[0], &bits = call.outputs[1];
  CHECK(is_dense(bits.layout()) && numel(bits.shape) == (numel(x.shape) + 7) / 8);
  alignas(64) float in[longest_run], out[longest_run];
  alignas(64) std::uint8_t sides[longest_run];
  std::int64_t first = 0;
  for_runs(
      x.shape, std::array{&y, &x},
      [&](const auto& runs, std::int64_t n) {
        const float* const values = read(runs[1], n, in);
        float* const results = place(runs[0], out);
        loop(n, results, values);
        write(runs[0], n, results);
        side_loop(n, sides, values, f.minimum);
        pack(sides, first, n, elements<std::uint8_t>(bits));
        first += n;
      },
      true);
}

void backward(const Call& call, const SlopeOfValue& f) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0], &y = call.outputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  alignas(64) float gradients[longest_run], values[longest_run], out[longest_run];
  alignas(64) std::uint8_t sides[longest_run];
  std::int64_t first = 0;
  for_runs(
      dx.shape, std::array{&dx, &dy, &y},
      [&](const auto& runs, std::int64_t n) {
        const float *const d = read(runs[1], n, gradients), *const v = read(runs[2], n, values);
        float* const results = place(runs[0], out);
        unpack(elements<const std::uint8_t>(call.outputs[1]), first, n, sides);
        slope_loop(n, results, d, v, sides, f);
        write(runs[0], n, results);
        first += n;
      },
      true);
}

}  // namespace

void inverted_gelu_forward(const Call& call, Workspace&) {
  forward(call, slope_of_gelu, gelu_loop_of({}));
}
void inverted_gelu_backward(const Call& call, Workspace&) { backward(call, slope_of_gelu); }
void inverted_tanh_gelu_forward(const Call& call, Workspace&) {
  forward(call, slope_of_tanh_gelu, gelu_loop_of({.tanh_approx = true}));
}
void inverted_tanh_gelu_backward(const Call& call, Workspace&) {
  backward(call, slope_of_tanh_gelu);
}
void inverted_silu_forward(const Call& call, Workspace&) {
  forward(call, slope_of_silu, silu_loop_of());
}
void inverted_silu_backward(const Call& call, Workspace&) { backward(call, slope_of_silu); }

}  // namespace tidemark::cpu
