// Decodes the weight to scratch, then multiplies as linear layers do; see stored_linear.h.
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/map.h"
#include "kernels/linear/linear.h"
#include "kernels/stored_linear/stored_linear.h"

namespace tidemark::cpu {
namespace {

// The products take the slots below 3.
enum StoredSlot : std::size_t { slot_weight = 3, slot_rows, slot_sums };

float rounded_as(DType dtype, float x) {
  return dtype == DType::Float16    ? to_float(to_float16(x))
         : dtype == DType::BFloat16 ? to_float(to_bfloat16(x))
                                    : x;
}

Array scratch_array(std::int64_t rows, std::int64_t columns, std::size_t slot,
                    Workspace& workspace) {
  const std::span<float> memory = workspace.floats(static_cast<std::size_t>(rows * columns), slot);
  return array_at(reinterpret_cast<std::byte*>(memory.data()), DType::Float32,
                  dense({rows, columns}));
}

/// W [out, in] in fp32, with the values that x's dtype can hold.
Array decoded_weight(const Call& call, Workspace& workspace) {
  const DType dtype = call.inputs[0].dtype;
  const std::int64_t in = call.inputs[0].shape.back(), out = call.outputs[0].shape.back();
  const Array weight = scratch_array(out, in, slot_weight, workspace);
  float* const w = elements<float>(weight);
  if (call.formula == Formula::Nf4Linear) {
    const FourBitWeight stored = four_bit_weight(call);
    for (std::int64_t i = 0; i < in * out; ++i) w[i] = rounded_as(dtype, stored(i));
    return weight;
  }
  const auto* const codes = elements<const std::uint8_t>(call.inputs[1]);
  const auto* const factors = elements<const float>(call.inputs[2]);
  for (std::int64_t i = 0; i < in * out; ++i)
    w[i] = rounded_as(dtype, int8_code(codes[i]) * factors[i / in] / int8_levels);
  return weight;
}

/// Codes of each row of x, and the largest |x| of each.
std::vector<float> coded_rows(const Array& x, const Array& codes) {
  const std::int64_t n = x.shape.back();
  std::vector<float> largest(static_cast<std::size_t>(codes.shape[0]));
  for_rows(std::array{&x}, [&](const auto& rows, std::int64_t i) {
    float* const to = elements<float>(codes) + i * n;
    gather(rows[0], n, to);
    float most = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      to[k] = rounded_as(DType::Float16, to[k]);
      most = std::max(most, std::abs(to[k]));
    }
    const float scale = most > 0 ? int8_levels / most : 0;
    for (std::int64_t k = 0; k < n; ++k) to[k] = std::nearbyint(to[k] * scale);
    largest[static_cast<std::size_t>(i)] = most;
  });
  return largest;
}

}  // namespace

void nf4_linear_forward(const Call& call, Workspace& workspace) {
  Call product;
  product.kind = OpKind::Linear;
  product.inputs = {call.inputs[0], decoded_weight(call, workspace)};
  if (const Array bias = bias_of(call)) product.inputs.push_back(bias);
  product.outputs = call.outputs;
  linear_forward(product, workspace);
}

void int8_linear_forward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &y = call.outputs[0], bias = bias_of(call);
  const std::int64_t in = x.shape.back(), out = y.shape.back(), rows = numel(x.shape) / in;
  const Array codes = scratch_array(rows, in, slot_rows, workspace);
  const std::vector<float> largest = coded_rows(x, codes);
  const Array weight = scratch_array(out, in, slot_weight, workspace);
  const auto* const stored = elements<const std::uint8_t>(call.inputs[1]);
  for (std::int64_t i = 0; i < in * out; ++i) elements<float>(weight)[i] = int8_code(stored[i]);
  const Array sums = scratch_array(rows, out, slot_sums, workspace);
  gemm(last_axes(codes, codes.data), last_axes(weight, weight.data).transposed(),
       last_axes(sums, sums.data), {}, workspace);
  const auto* const factors = elements<const float>(call.inputs[2]);
  const float* const shift = bias ? read_vector(bias, workspace, 0) : nullptr;
  for_rows(std::array{&y}, [&](const auto& run, std::int64_t i) {
    float* const to = elements<float>(sums) + i * out;
    const float of_row = largest[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < out; ++j) {
      const float value = to[j] * (of_row * factors[j] / (int8_levels * int8_levels));
      to[j] = rounded_as(DType::Float16, value + (shift != nullptr ? shift[j] : 0));
    }
    scatter(to, out, run[0]);
  });
}

void stored_linear_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  Call product;
  product.kind = OpKind::Linear, product.pass = Pass::Backward;
  product.inputs = {call.inputs[0], decoded_weight(call, workspace)};
  product.outputs = call.outputs;
  product.d_outputs = {dy}, product.d_inputs = {dx, Array{}};
  linear_backward(product, workspace);
}

}  // namespace tidemark::cpu
