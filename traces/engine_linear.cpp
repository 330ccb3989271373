// Rows of products in eight bits: three numbers of elements say all.
#include "traces/engine_linear.h"

#include <string>

namespace tidemark {
namespace {

constexpr std::string_view engine_product = "transformer_engine::linear_fp8";
// The largest number is looked for, then numbers are read again and written as two codes
// (Float8CurrentScaling; scales of blocks leave the first pass out).
constexpr std::int64_t codes_of_each = 2;
constexpr std::int64_t bytes_of_casting(std::int64_t elements, std::int64_t wide) {
  return elements * (2 * wide + codes_of_each);
}
constexpr int kernels_of_casting = 2;

}  // namespace

bool is_engine_product(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row && row->operation == engine_product;
}

OpaqueRow engine_product_row(const Shape& x, const Shape& weight, const Shape& y, std::int64_t wide,
                             bool keeps_input, std::int64_t micro_batches) {
  const std::int64_t of_x = numel(x), of_weight = numel(weight), of_y = numel(y);
  OpaqueRow row{.operation = std::string(engine_product),
                .gradients = 0b11,
                .saved = (keeps_input ? input_bit(0) : output_bit(1)) | input_bit(2),
                .math = DType::Float8};
  row.forward.flops = 2 * of_x * y.back();
  row.backward.flops = 2 * *row.forward.flops;
  row.forward.moved = Bytes{of_x + of_weight + of_y * wide};
  row.backward.moved = Bytes{2 * of_y + of_weight + of_x + (of_x + of_weight) * wide};
  row.forward.streamed =
      Bytes{bytes_of_casting(of_x, wide) + bytes_of_casting(of_weight, wide) / micro_batches};
  row.backward.streamed = Bytes{bytes_of_casting(of_y + (keeps_input ? of_x : 0), wide)};
  row.forward.kernels = row.backward.kernels = 1 + kernels_of_casting;
  row.forward.workspace = Bytes{of_x};  // codes by rows
  row.backward.workspace = Bytes{codes_of_each * (of_y + (keeps_input ? of_x : 0))};
  return row;
}

void recount_engine_products(Trace& trace) {
  std::vector<bool> is_gathered(trace.tensors.size());
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::AllGather) is_gathered[index(trace.outputs(op)[0])] = true;
    if (!is_engine_product(trace, op)) continue;
    const TensorId x = trace.inputs(op)[0];
    trace.opaque_rows[index(op.opaque)] = engine_product_row(
        trace[x].shape, trace[trace.inputs(op)[1]].shape, trace[trace.outputs(op)[0]].shape,
        size_of(trace[x].dtype), is_gathered[index(x)], trace.step.accumulate.count);
  }
}

}  // namespace tidemark
