// Rows of products of codes: three numbers of elements say all.
#include "traces/engine_linear.h"

#include <algorithm>
#include <array>
#include <string>

namespace tidemark {
namespace {

constexpr std::string_view engine_product = "transformer_engine::linear_";

// By LinearMath. Factors of a weight's squares of 128 × 128 (Float8BlockScaling) are left out,
// 1/4096 of its codes; those of squares of 16 × 16 (NVFP4BlockScaling) are written once per 16
// numbers all the same. NVFP4's second pass turns columns by a Hadamard matrix on its way.
constexpr std::array codings = {
    EngineCodes{DType::Float8, 1, 16, 0, 2},
    EngineCodes{DType::Float8, 1, 128, size_of(DType::Float32), 1},
    EngineCodes{DType::Float8, 1, 32, 1, 1},
    EngineCodes{DType::Float4x2, 2, 16, 1, 2},
};
static_assert(codings.size() == linear_maths.size());

}  // namespace

const EngineCodes& engine_codes(LinearMath math) { return codings[static_cast<std::size_t>(math)]; }

std::int64_t rows_of_codes(LinearMath math) {
  constexpr std::int64_t of_tensor = 8;
  return math == LinearMath::Fp8 ? of_tensor : engine_codes(math).group;
}

std::int64_t coded_bytes(const EngineCodes& codes, std::int64_t numbers) {
  return numbers / codes.in_a_byte + numbers / codes.group * codes.factor;
}

bool is_engine_product(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row && row->operation.starts_with(engine_product);
}

std::int64_t copies_of_codes(const StepOptions& step) {
  constexpr std::int64_t as_they_lie = 100;
  const bool is_one = step.linears->math == LinearMath::Fp8 && step.capability >= as_they_lie;
  return is_one ? 1 : 2;
}

OpaqueRow engine_product_row(const StepOptions& step, const EngineProduct& product) {
  const auto& [x, weight, y, wide, keeps_input] = product;
  const EngineCodes& codes = engine_codes(step.linears->math);
  const std::int64_t copies = copies_of_codes(step);
  const std::int64_t of_x = numel(x), of_weight = numel(weight), of_y = numel(y);
  const auto coded = [&](std::int64_t elements) { return coded_bytes(codes, elements); };
  const auto bytes_of_casting = [&](std::int64_t elements) {
    return codes.passes * elements * wide + copies * coded(elements);
  };
  OpaqueRow row{.operation = std::string(engine_product).append(to_string(step.linears->math)),
                .gradients = 0b11,
                .saved = (keeps_input ? input_bit(0) : output_bit(1)) | input_bit(2),
                .math = codes.dtype};
  const std::int64_t cast_again = of_y + (keeps_input ? of_x : 0);
  row.forward.flops = 2 * of_x * y.back();
  row.backward.flops = 2 * *row.forward.flops;
  row.forward.moved = Bytes{coded(of_x) + coded(of_weight) + of_y * wide};
  row.backward.moved =
      Bytes{2 * coded(of_y) + coded(of_weight) + coded(of_x) + (of_x + of_weight) * wide};
  row.forward.streamed =
      Bytes{bytes_of_casting(of_x) + bytes_of_casting(of_weight) / step.accumulate.count};
  row.backward.streamed = Bytes{bytes_of_casting(cast_again)};
  row.forward.kernels = row.backward.kernels = 1 + codes.passes;
  row.forward.workspace = Bytes{(copies - 1) * coded(of_x)};  // those that are not kept
  row.backward.workspace = Bytes{copies * coded(cast_again)};
  return row;
}

void recount_engine_products(Trace& trace) {
  std::vector<bool> is_gathered(trace.tensors.size());
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::AllGather) is_gathered[index(trace.outputs(op)[0])] = true;
    if (!is_engine_product(trace, op)) continue;
    const TensorId x = trace.inputs(op)[0];
    trace.opaque_rows[index(op.opaque)] =
        engine_product_row(trace.step, {.x = trace[x].shape,
                                        .weight = trace[trace.inputs(op)[1]].shape,
                                        .y = trace[trace.outputs(op)[0]].shape,
                                        .wide = size_of(trace[x].dtype),
                                        .keeps_input = is_gathered[index(x)]});
  }
}

}  // namespace tidemark
