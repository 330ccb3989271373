// Sums, quotients and differences on the CPU; see arithmetic.h.
#include "kernels/arithmetic/arithmetic.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

void quotient_loop(std::int64_t n, float* y, const float* a, const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] / b[i];
}
void divisor_loop(std::int64_t n, float* y, const float* dy, const float* a, const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = -dy[i] * a[i] / (b[i] * b[i]);
}
void difference_loop(std::int64_t n, float* y, const float* a, const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}
void less_one_loop(std::int64_t n, float* y, const float* a) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - 1;
}
void negative_loop(std::int64_t n, float* y, const float* x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = -x[i];
}

}  // namespace

void zeros_forward(const Call& call, Workspace&) { set_all(call.outputs[0], 0.0f); }

void sum_forward(const Call& call, Workspace& workspace) {
  const Array& x = call.inputs[0];
  assign_sum(with_axis(call.outputs[0], x.shape.rank(), call.settings.axis), x, workspace);
}

void sum_backward(const Call& call, Workspace&) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  assign(dx, with_axis(dy, dx.shape.rank(), call.settings.axis));
}

void divide_forward(const Call& call, Workspace&) {
  map(call.outputs[0], quotient_loop, call.inputs[0], call.inputs[1]);
}

void divide_backward(const Call& call, Workspace& workspace) {
  const Array &a = call.inputs[0], &b = call.inputs[1], &dy = call.d_outputs[0];
  const Array &da = call.d_inputs[0], &db = call.d_inputs[1];
  if (!dy) return set_zero(da), set_zero(db);
  if (da) map(da, quotient_loop, dy, b);
  if (db) map_and_sum(db, dy.shape, workspace, divisor_loop, dy, a, b);
}

void subtract_forward(const Call& call, Workspace&) {
  if (call.inputs.size() == 1) return map(call.outputs[0], less_one_loop, call.inputs[0]);
  map(call.outputs[0], difference_loop, call.inputs[0], call.inputs[1]);
}

void subtract_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_outputs[0], &da = call.d_inputs[0], &db = entry(call.d_inputs, 1);
  if (!dy) return set_zero(da), set_zero(db);
  if (da) assign(da, dy);
  if (db) map_and_sum(db, dy.shape, workspace, negative_loop, dy);
}

}  // namespace tidemark::cpu
