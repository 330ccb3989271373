// Softmax and log-softmax on the CPU, row by row; see softmax.h.
#include <cmath>
#include <limits>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/softmax/softmax.h"

namespace tidemark::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TIDEMARK_INLINE float larger(float a, float b) { return b > a ? b : a; }

// NaN is passed over: the exponentials find it.
TIDEMARK_CLONES float largest(const float* x, std::int64_t n) {
  float most[choosing_lanes];
  for (std::int64_t k = 0; k < choosing_lanes; ++k) most[k] = -infinity;
  std::int64_t i = 0;
  for (; i + choosing_lanes <= n; i += choosing_lanes)
    for (std::int64_t k = 0; k < choosing_lanes; ++k) most[k] = larger(most[k], x[i + k]);
  for (std::int64_t k = 0; i < n; ++i, ++k) most[k] = larger(most[k], x[i]);
  return fold_lanes(most, [](float a, float b) { return larger(a, b); });
}

TIDEMARK_INLINE float shifted_exp(float x, float shift) {
  const float low = x - shift;  // ≤ 0; below −104 its power is less than half the smallest number
  return exp_of_negative(low < -104.0f ? -104.0f : low);
}

// What is left behind the last whole vector is computed again together with its end: numbers one
// by one would take half the time of a row of 197.
TIDEMARK_CLONES void exponential_loop(std::int64_t n, float* __restrict y,
                                      const float* __restrict x, float shift) {
  if (n < lanes) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = shifted_exp(x[i], shift);
    return;
  }
  for (std::int64_t i = 0; i < (n & -lanes); ++i) y[i] = shifted_exp(x[i], shift);
  for (std::int64_t i = n - lanes; i < n; ++i) y[i] = shifted_exp(x[i], shift);
}

TIDEMARK_CLONES void scale_loop(std::int64_t n, float* y, float factor) {
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

TIDEMARK_CLONES void shift_loop(std::int64_t n, float* __restrict y, const float* __restrict x,
                                float shift, float log_sum) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) - log_sum;
}

TIDEMARK_CLONES void softmax_gradient_loop(std::int64_t n, float* __restrict dx,
                                           const float* __restrict dy, const float* __restrict y,
                                           float product) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - product);
}

TIDEMARK_CLONES void log_softmax_gradient_loop(std::int64_t n, float* __restrict dx,
                                               const float* __restrict dy,
                                               const float* __restrict y, float total) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] - exp_of(y[i]) * total;
}

// Exponentials are summed while their part of the row is in the first-level cache.
float exponentials(std::int64_t n, float* y, const float* x, float shift) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += longest_run) {
    const std::int64_t part = std::min(longest_run, n - i);
    exponential_loop(part, y + i, x + i, shift);
    total += static_cast<double>(sum(y + i, part));
  }
  return static_cast<float>(total);
}

float* scratch(Workspace& workspace, std::int64_t n, std::size_t slot) {
  return workspace.floats(static_cast<std::size_t>(n), slot).data();
}

/// Calls body(n, to, x) per row; x is read and `to` is written.
template <typename Body>
void forward(const Call& call, Workspace& workspace, Body&& body) {
  const std::int64_t n = row_length(call.inputs[0].shape);
  float *const in = scratch(workspace, n, 0), *const out = scratch(workspace, n, 1);
  for_rows(std::array{&call.inputs[0], &call.outputs[0]}, [&](const auto& rows, std::int64_t) {
    float* const y = place(rows[1], out);
    body(n, y, read(rows[0], n, in));
    write(rows[1], n, y);
  });
}

/// Calls body(n, dx, dy, y) per row.
template <typename Body>
void backward(const Call& call, Workspace& workspace, Body&& body) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  const std::int64_t n = row_length(dx.shape);
  float *const up = scratch(workspace, n, 0), *const in = scratch(workspace, n, 1),
               *const out = scratch(workspace, n, 2);
  for_rows(std::array{&dx, &dy, &call.outputs[0]}, [&](const auto& rows, std::int64_t) {
    float* const result = place(rows[0], out);
    body(n, result, read(rows[1], n, up), read(rows[2], n, in));
    write(rows[0], n, result);
  });
}

}  // namespace

void softmax_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, [](std::int64_t n, float* y, const float* x) {
    const float total = exponentials(n, y, x, largest(x, n));
    scale_loop(n, y, 1.0f / total);
  });
}

void softmax_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, [](std::int64_t n, float* dx, const float* dy, const float* y) {
    softmax_gradient_loop(n, dx, dy, y, dot(dy, y, n));
  });
}

void log_softmax_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, [](std::int64_t n, float* y, const float* x) {
    const float shift = largest(x, n);
    shift_loop(n, y, x, shift, std::log(exponentials(n, y, x, shift)));
  });
}

void log_softmax_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, [](std::int64_t n, float* dx, const float* dy, const float* y) {
    log_softmax_gradient_loop(n, dx, dy, y, sum(dy, n));
  });
}

}  // namespace tidemark::cpu
