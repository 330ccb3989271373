// Elementwise arithmetic on the CPU; see elementwise.h.
#include "kernels/cpu/clones.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/map.h"
#include "kernels/elementwise/elementwise.h"

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES void scale_loop(std::int64_t n, float* __restrict y, const float* x, float factor) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

void scale(const Array& y, const Array& x, float factor) {
  map(
      y,
      [factor](std::int64_t n, float* to, const float* from) { scale_loop(n, to, from, factor); },
      x);
}

}  // namespace

void add_forward(const Call& call, Workspace&) {
  map(call.outputs[0], add_loop, call.inputs[0], call.inputs[1]);
}

void add_backward(const Call& call, Workspace& workspace) {
  const Array& dy = call.d_outputs[0];
  for (const Array& dx : call.d_inputs) {
    if (!dx) continue;
    if (!dy)
      set_all(dx, 0.0f);
    else
      assign_sum(dx, dy, workspace);
  }
}

void mul_forward(const Call& call, Workspace&) {
  map(call.outputs[0], multiply_loop, call.inputs[0], call.inputs[1]);
}

void mul_backward(const Call& call, Workspace& workspace) {
  const Array& dy = call.d_outputs[0];
  for (std::size_t i = 0; i < call.d_inputs.size(); ++i) {
    const Array& dx = call.d_inputs[i];
    if (!dx) continue;
    if (!dy)
      set_all(dx, 0.0f);
    else
      map_and_sum(dx, dy.shape, workspace, multiply_loop, dy, call.inputs[1 - i]);
  }
}

void scale_forward(const Call& call, Workspace&) {
  scale(call.outputs[0], call.inputs[0], static_cast<float>(call.settings.factor));
  if (call.outputs.size() > 1 && call.outputs[1])
    *elements<double>(call.outputs[1]) = call.settings.factor;
}

void scale_backward(const Call& call, Workspace&) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  scale(call.d_inputs[0], call.d_outputs[0], static_cast<float>(call.settings.factor));
}

// The sum lives in the output only if that is fp32; a 16-bit one takes its sum from scratch.
void average_forward(const Call& call, Workspace&) {
  const Array& y = call.outputs[0];
  const auto count = static_cast<float>(call.inputs.size());
  alignas(64) float total[longest_run], next[longest_run];
  std::array<const Array*, RunSpace::most_arrays> arrays{};
  CHECK(call.inputs.size() + 1 < arrays.size());
  arrays.fill(&y);
  for (std::size_t k = 0; k < call.inputs.size(); ++k) arrays[k + 1] = &call.inputs[k];
  for_runs(arrays, [&](const auto& runs, std::int64_t n) {
    std::copy_n(read(runs[1], n, next), n, total);
    for (std::size_t k = 1; k < call.inputs.size(); ++k)
      add_to(total, read(runs[k + 1], n, next), n);
    for (std::int64_t i = 0; i < n; ++i) total[i] /= count;
    write(runs[0], n, total);
  });
}

void average_backward(const Call& call, Workspace&) {
  const Array& dy = call.d_outputs[0];
  const float count = static_cast<float>(call.d_inputs.size());
  for (const Array& dx : call.d_inputs) {
    if (!dx) continue;
    if (dy)
      map(
          dx,
          [count](std::int64_t n, float* to, const float* from) {
            for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] / count;
          },
          dy);
    else
      set_all(dx, 0.0f);
  }
}

void cast_forward(const Call& call, Workspace&) { assign(call.outputs[0], call.inputs[0]); }

void cast_backward(const Call& call, Workspace&) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  assign(call.d_inputs[0], call.d_outputs[0]);
}

}  // namespace tidemark::cpu
