// LayerNorm and RmsNorm on the CPU, row by row; see norm.h.
#include "kernels/cpu/loops.h"
#include "kernels/cpu/map.h"
#include "kernels/norm/norm_loops.h"

namespace tidemark::cpu {
namespace {

float* row_scratch(Workspace& workspace, std::int64_t n, std::size_t slot) {
  return workspace.floats(static_cast<std::size_t>(n), slot).data();
}

void set_if_there(const Run& cell, float value) {
  if (cell) set_value(cell.data, cell.dtype, value);
}

/// Pieces of the workspace.
enum Slot : std::size_t { XSlot, YSlot, ZSlot, GSlot, GammaSlot, BetaSlot, RoundSlot };

// What was rounded to 16 bits when it was stored must be rounded where it is used, too.
void round_to(DType dtype, std::int64_t n, float* values, Workspace& workspace) {
  if (dtype == DType::Float32) return;
  auto* const narrow = reinterpret_cast<std::byte*>(row_scratch(workspace, n, RoundSlot));
  from_floats(values, n, narrow, dtype);
  to_floats(narrow, dtype, n, values);
}

struct Norm {
  bool is_centered;
  std::size_t mean, rstd, normalized;  ///< which outputs; 9 = none
};
constexpr Norm layer_norm{true, 1, 2, 9};
constexpr Norm rms_norm{false, 9, 1, 2};

void forward(const Call& call, Workspace& workspace, const Norm& norm) {
  const Array& x = call.inputs[0];
  const std::int64_t n = row_length(x.shape);
  const Array &normalized = entry(call.outputs, norm.normalized), &beta = entry(call.inputs, 2);
  const bool rounds = call.outputs.size() > norm.normalized;
  const float* const gamma = read_vector(call.inputs[1], workspace, GammaSlot);
  const float* const shift = beta ? read_vector(beta, workspace, BetaSlot) : nullptr;
  float *const in = row_scratch(workspace, n, XSlot), *const z = row_scratch(workspace, n, ZSlot),
               *const out = row_scratch(workspace, n, GSlot);
  const std::array arrays = {&x, &call.outputs[0], &entry(call.outputs, norm.mean),
                             &entry(call.outputs, norm.rstd), &normalized};
  for_rows(arrays, [&](const auto& rows, std::int64_t) {
    const float* const values = read(rows[0], n, in);
    const Moments of_row = moments(values, n, call.settings.epsilon, norm.is_centered);
    set_if_there(rows[2], of_row.mean);
    set_if_there(rows[3], of_row.rstd);
    float* const y = place(rows[1], out);
    if (shift != nullptr) {
      normalize_and_scale(n, y, values, of_row, gamma, shift);
    } else {
      normalize(n, z, values, of_row);
      if (rounds) round_to(normalized.dtype, n, z, workspace);
      write(rows[4], n, z);
      multiply_loop(n, y, z, gamma);
    }
    write(rows[1], n, y);
  });
}

void clear_gradients(const Call& call) {
  for (const Array& d_input : call.d_inputs)
    if (d_input) set_all(d_input, 0.0f);
}

void backward(const Call& call, Workspace& workspace, const Norm& norm) {
  const Array &x = call.inputs[0], &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  const Array &d_gamma = entry(call.d_inputs, 1), &d_beta = entry(call.d_inputs, 2);
  if (!dy) return clear_gradients(call);
  const std::int64_t n = row_length(x.shape);
  const bool rounds = call.outputs.size() > norm.normalized && d_gamma;
  const float* const gamma = dx ? read_vector(call.inputs[1], workspace, GammaSlot) : nullptr;
  float *const in = row_scratch(workspace, n, XSlot), *const up = row_scratch(workspace, n, YSlot),
               *const z = row_scratch(workspace, n, ZSlot),
               *const g = row_scratch(workspace, n, GSlot);
  float* const out = row_scratch(workspace, n, BetaSlot);
  RowSums affine(2 * n, workspace);  // dγ, then dβ
  const auto known_or_new = [&](const Run& row, const Run& mean, const Run& rstd) {
    if (!rstd || (norm.is_centered && !mean))
      return moments(read(row, n, in), n, call.settings.epsilon, norm.is_centered);
    return Moments{mean ? value_at(mean.data, mean.dtype) : 0.0f, value_at(rstd.data, rstd.dtype)};
  };
  const std::array arrays = {&x, &dy, &dx, &entry(call.outputs, norm.mean),
                             &entry(call.outputs, norm.rstd)};
  for_rows(arrays, [&](const auto& rows, std::int64_t) {
    const Moments of_row = x ? known_or_new(rows[0], rows[3], rows[4]) : Moments{};
    const float* const gradient = read(rows[1], n, up);
    if (dx) {
      const GradientSums sums =
          normalize_with_gradient(n, z, g, read(rows[0], n, in), of_row, gradient, gamma);
      float* const result = place(rows[2], out);
      norm_gradient(n, result, g, z, of_row.rstd, sums, norm.is_centered);
      write(rows[2], n, result);
    } else if (x) {
      normalize(n, z, read(rows[0], n, in), of_row);
    } else {
      std::fill_n(z, n, 0.0f);  // dβ alone needs no x
    }
    if (!d_gamma && !d_beta) return;
    if (rounds) round_to(call.outputs[norm.normalized].dtype, n, z, workspace);
    add_affine(n, affine.sums(), affine.sums() + n, gradient, z);
    affine.row_done();
  });
  const float* const total = affine.total();
  if (d_gamma) scatter(total, n, nth_row(d_gamma, 0));
  if (d_beta) scatter(total + n, n, nth_row(d_beta, 0));
}

}  // namespace

void layer_norm_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, layer_norm);
}
void layer_norm_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, layer_norm);
}
void rms_norm_forward(const Call& call, Workspace& workspace) {
  forward(call, workspace, rms_norm);
}
void rms_norm_backward(const Call& call, Workspace& workspace) {
  backward(call, workspace, rms_norm);
}

}  // namespace tidemark::cpu
