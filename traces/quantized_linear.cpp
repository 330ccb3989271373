// Linears whose frozen weight is stored in four or eight bits. As bitsandbytes 0.50.2 runs them
// (autograd/_functions.py, nn/modules.py) each is an opaque op, because its backward reads the
// codes and makes the 16-bit weight again. torchao 0.18's Float8WeightOnlyConfig makes it in the
// forward, for a plain product (quantize_/workflows/float8/float8_tensor.py), whose node keeps it.
#include <algorithm>

#include "base/units.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

constexpr std::int64_t block = 64;               // elements per factor
constexpr std::int64_t factors_per_block = 256;  // factors per factor of theirs

struct StoredWeight {
  std::vector<TensorId> tensors;  // codes first
  Bytes factors_again;            // what decoding them takes in the backward
};

}  // namespace

TensorId TraceBuilder::stored_linear(const std::string& name, TensorId x, std::int64_t out,
                                     bool bias) {
  return has_own_linears(*step().base) ? quantized_linear(name, x, out, bias)
                                       : fp8_stored_linear(name, x, out, bias);
}

TensorId TraceBuilder::stored_part(const std::string& name, const Shape& shape, DType dtype) {
  const TensorId id = parameter_of(name, shape, dtype, ParameterRole::Base);
  trace_.tensors[index(id)].trainable = false;
  return id;
}

// The codes become fp32, and fp32 once more times their row's factor, before they are what the
// weight was.
TensorId TraceBuilder::fp8_stored_linear(const std::string& name, TensorId x, std::int64_t out,
                                         bool bias) {
  if (trace_.family == "gpt2")
    throw UsageError(
        "--base: torchao stores no weights of GPT-2's projections, which are Conv1D modules (take "
        "nf4 or int8)");
  const std::int64_t in = shape(x).back(), elements = in * out;
  const std::array stored = {stored_part(name + ".weight", {out, in}, DType::Float8),
                             stored_part(name + ".weight.scale", {out, 1}, DType::Float32)};
  const TensorId b =
      bias ? parameter_of(name + ".bias", {out}, base_, ParameterRole::Base) : no_tensor;
  const std::int64_t fp32 = elements * size_of(DType::Float32);
  const bool rounds = base_ != DType::Float32;
  OpaqueRow row{.operation = "torchao::dequantize_affine_float8", .math = DType::Float32};
  row.forward.moved = Bytes{elements + fp32};
  row.forward.streamed = Bytes{2 * fp32 + (rounds ? fp32 + elements * size_of(base_) : 0)};
  row.forward.workspace = Bytes{rounds ? 2 * fp32 : fp32};
  row.forward.kernels = rounds ? 3 : 2;
  const OutputSpec decoded{"", {out, in}, base_};
  begin_function();
  const TensorId weight =
      local(opaque(name + ".weight.decoded", stored, std::span(&decoded, 1), std::move(row)));
  TensorId y = linear_with(name, x, weight, no_tensor);
  if (b != no_tensor) y = add(name + ".add", y, b);
  end_function();
  return y;
}

// Products of int8 sum up in int32; x becomes codes and a factor per row, and the result fp16
// before it is what x was. The backward of either makes the weight anew, for dx alone.
TensorId TraceBuilder::quantized_linear(const std::string& name, TensorId x, std::int64_t out,
                                        bool bias) {
  const std::int64_t in = shape(x).back(), elements = in * out;
  const std::int64_t rows = numel(shape(x)) / std::max<std::int64_t>(1, in);
  const auto frozen = [&](const char* suffix, const Shape& shape, DType dtype) {
    return stored_part(name + suffix, shape, dtype);
  };
  const bool is_int8 = *step().base == BaseWeights::Int8;
  StoredWeight stored;
  if (is_int8) {
    stored.tensors = {frozen(".weight", {out, in}, DType::UInt8),
                      frozen(".weight.scale", {out}, DType::Float32)};
  } else {
    const std::int64_t factors = ceil_div(elements, block);
    const bool nests = *step().base == BaseWeights::Nf4Double;
    stored.tensors = {frozen(".weight", {ceil_div(elements, 2), 1}, DType::UInt8),
                      frozen(".weight.absmax", {factors}, nests ? DType::UInt8 : DType::Float32),
                      frozen(".weight.quant_map", {16}, DType::Float32)};
    if (nests) {
      stored.tensors.push_back(
          frozen(".weight.nested_absmax", {ceil_div(factors, factors_per_block)}, DType::Float32));
      stored.tensors.push_back(frozen(".weight.nested_quant_map", {256}, DType::Float32));
      stored.factors_again = Bytes{factors * size_of(DType::Float32)};
    }
  }
  const TensorId read = cast(name + ".compute", x, compute_);
  std::vector<TensorId> inputs = {read};
  inputs.insert(inputs.end(), stored.tensors.begin(), stored.tensors.end());
  if (bias) inputs.push_back(parameter_of(name + ".bias", {out}, compute_, ParameterRole::Base));

  OpaqueRow row{.operation = is_int8 ? "bitsandbytes::int8_scaled_mm" : "bitsandbytes::gemm_4bit",
                .gradients = 1,
                .math = compute_,
                .computes = is_int8 ? Formula::Int8Linear : Formula::Nf4Linear};
  for (int i = 1; i <= static_cast<int>(stored.tensors.size()); ++i) row.saved |= input_bit(i);
  if (is_int8) row.saved |= input_bit(0);  // MatMul8bitLt names it in ctx, though nothing reads it
  const std::int64_t half = size_of(compute_);
  const Bytes weight{elements * half}, dx{rows * in * half};
  row.forward.flops = row.backward.flops = 2 * rows * elements;
  row.forward.kernels = is_int8 ? 3 : 1;
  row.backward.kernels = 2;
  if (is_int8)
    row.forward.workspace =
        Bytes{rows * in + rows * size_of(DType::Float32) + rows * out * size_of(DType::Float32) +
              (compute_ == DType::Float16 ? 0 : rows * out * half)};
  row.backward.workspace = weight + std::max(Bytes{}, stored.factors_again - dx);
  const OutputSpec result{"", shape(x).with_back(out), compute_};
  const TensorId y = opaque(name, inputs, std::span(&result, 1), std::move(row));
  return cast(name + ".result", y, trace_[x].dtype);
}

}  // namespace tidemark
