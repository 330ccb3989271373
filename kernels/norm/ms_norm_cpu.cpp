// MsLayerNorm and MsRmsNorm on the CPU: no affine part, and a backward from the output alone.
#include "kernels/cpu/map.h"
#include "kernels/norm/norm_loops.h"

namespace tidemark::cpu {
namespace {

void forward(const Call& call, Workspace& workspace, bool is_centered) {
  const Array& x = call.inputs[0];
  const std::int64_t n = row_length(x.shape);
  float* const in = workspace.floats(static_cast<std::size_t>(n), 0).data();
  float* const out = workspace.floats(static_cast<std::size_t>(n), 1).data();
  const std::array arrays = {&x, &call.outputs[0], &call.outputs[1]};
  for_rows(arrays, [&](const auto& rows, std::int64_t) {
    const float* const values = read(rows[0], n, in);
    const Moments of_row = moments(values, n, call.settings.epsilon, is_centered);
    if (rows[2]) set_value(rows[2].data, rows[2].dtype, of_row.rstd);
    float* const y = place(rows[1], out);
    normalize(n, y, values, of_row);
    write(rows[1], n, y);
  });
}

void backward(const Call& call, Workspace& workspace, bool is_centered) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  const std::int64_t n = row_length(dx.shape);
  const auto scratch = [&](std::size_t slot) {
    return workspace.floats(static_cast<std::size_t>(n), slot).data();
  };
  float *const in = scratch(0), *const up = scratch(1), *const out = scratch(2);
  const std::array arrays = {&dx, &dy, &call.outputs[0], &call.outputs[1]};
  for_rows(arrays, [&](const auto& rows, std::int64_t) {
    const float rstd = value_at(rows[3].data, rows[3].dtype);
    float* const result = place(rows[0], out);
    const float *const g = read(rows[1], n, up), *const z = read(rows[2], n, in);
    norm_gradient(n, result, g, z, rstd, {is_centered ? sum(g, n) : 0.0f, dot(g, z, n)},
                  is_centered);
    write(rows[0], n, result);
  });
}

}  // namespace

void ms_layer_norm_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, true);
}
void ms_layer_norm_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, true);
}
void ms_rms_norm_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, false);
}
void ms_rms_norm_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, false);
}

}  // namespace tidemark::cpu
