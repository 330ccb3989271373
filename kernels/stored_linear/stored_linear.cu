// The weight is decoded to scratch in x's dtype, then multiplied by the library; see
// stored_linear.h.
#include "kernels/cuda/multiply.h"
#include "kernels/linear/linear.h"
#include "kernels/stored_linear/stored_linear.cuh"
#include "kernels/stored_linear/stored_linear.h"

namespace tidemark::cuda {
namespace {

// linear_forward() and linear_backward() take the slots 2 and 3, multiply() those from 4 on.
enum StoredSlot : std::size_t { slot_weight = 0, slot_codes, slot_rows, slot_sums };

template <typename Run>
void with_data_dtype(DType dtype, const Run& run) {
  dtype == DType::Float32    ? run(Tag<float>{})
  : dtype == DType::BFloat16 ? run(Tag<BFloat16>{})
                             : run(Tag<Float16>{});
}

Array stored_scratch(Launch& launch, const Shape& shape, DType dtype, std::size_t slot) {
  return array_at(scratch(launch, numel(shape) * size_of(dtype), slot), dtype, dense(shape));
}

/// W [out, in]; with eight bits, without factors: its codes.
Array decoded_weight(const Call& call, Launch& launch, bool has_factors) {
  const std::int64_t in = call.inputs[0].shape.back(), out = call.outputs[0].shape.back();
  const DType dtype = call.inputs[0].dtype;
  const Array weight = stored_scratch(launch, {out, in}, dtype, slot_weight);
  const dim3 blocks(blocks_for(launch, in * out)), threads(usual_threads);
  with_data_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (call.formula == Formula::Nf4Linear)
      start(launch, "decode nf4", decode_four_bits_kernel<T>, blocks, threads, 0,
            four_bit_weight(call), elements<T>(weight), in * out);
    else
      start(
          launch, "decode int8", decode_int8_kernel<T>, blocks, threads, 0,
          elements<const std::uint8_t>(call.inputs[1]),
          has_factors ? elements<const float>(call.inputs[2]) : static_cast<const float*>(nullptr),
          elements<T>(weight), in * out, in);
  });
  return weight;
}

}  // namespace

void nf4_linear_forward(const Call& call, Launch& launch) {
  Call product;
  product.kind = OpKind::Linear;
  product.inputs = {call.inputs[0], decoded_weight(call, launch, true)};
  if (const Array bias = bias_of(call)) product.inputs.push_back(bias);
  product.outputs = call.outputs;
  linear_forward(product, launch);
}

void int8_linear_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0], bias = bias_of(call);
  const std::int64_t in = x.shape.back(), out = y.shape.back(), rows = numel(x.shape) / in;
  const Array lying = as_rows(launch, x, slot_rows);
  const Array codes = stored_scratch(launch, {rows, in}, x.dtype, slot_codes);
  const std::int64_t sums_bytes = rows * out * size_of(DType::Float32);
  std::byte* const memory = scratch(launch, sums_bytes + rows * size_of(DType::Float32), slot_sums);
  const Array sums = array_at(memory, DType::Float32, dense({rows, out}));
  const Array largest = array_at(memory + sums_bytes, DType::Float32, dense({rows, 1}));
  with_data_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "code rows", code_rows_kernel<T>, dim3(blocks_for(launch, rows * warp_size)),
          dim3(usual_threads), 0, reader<AnyFloat>(lying), elements<T>(codes),
          elements<float>(largest), rows, in, lying.strides[0], lying.strides[1]);
  });
  multiply(launch, codes, transposed(decoded_weight(call, launch, false)), sums);
  const Array results = as_rows(launch, y, slot_rows);
  const Array factors = call.inputs[2];
  pointwise(launch, "scale codes", PerElement<ScaleCodesFunction>{},
            {&sums, &largest, &factors, &bias, &results});
  if (results.data != y.data) {
    Array as_y = results;
    as_y.shape = y.shape, as_y.strides = dense(y.shape).strides;
    convert(launch, as_y, y);
  }
}

void stored_linear_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  Call product;
  product.kind = OpKind::Linear, product.pass = Pass::Backward;
  product.inputs = {call.inputs[0], decoded_weight(call, launch, true)};
  product.outputs = call.outputs;
  product.d_outputs = {dy}, product.d_inputs = {dx, Array{}};
  linear_backward(product, launch);
}

}  // namespace tidemark::cuda
