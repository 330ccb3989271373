// Lookups in a trace, and which inputs get gradients and which operands their backward needs.
#include "traces/trace.h"

#include <algorithm>
#include <bit>

namespace tidemark {

std::size_t shared_blocks(const Trace& trace) {
  return static_cast<std::size_t>(std::ranges::count(trace.blocks, false, &Block::is_further));
}

const InputFill* fill_of(const Trace& trace, const Tensor& tensor) {
  return tensor.fill == no_fill ? nullptr : &trace.fills[index(tensor.fill)];
}

bool is_padding(const Trace& trace, const Op& op) {
  if (op.kind != OpKind::Concat || op.inputs != 2) return false;
  const InputFill* fill = fill_of(trace, trace[trace.inputs(op)[1]]);
  return fill && std::holds_alternative<fill::Constant>(*fill);
}

double attribute(const Trace& trace, const Op& op, AttributeKey key, double otherwise) {
  for (const Attribute& attribute : trace.attributes_of(op))
    if (attribute.key == key) return attribute.value;
  return otherwise;
}

TensorId operand(const Trace& trace, const Op& op, int bit) {
  if (bit < 16)
    return bit < op.inputs ? trace.inputs(op)[static_cast<std::size_t>(bit)] : no_tensor;
  const int output = bit - 16;
  return output < op.outputs ? trace.outputs(op)[static_cast<std::size_t>(output)] : no_tensor;
}

std::vector<std::string_view> lines_by_tensor(const Trace& trace) {
  std::vector<std::string_view> lines(trace.tensors.size());
  for (const Op& op : trace.ops)
    for (const TensorId output : trace.outputs(op))
      if (trace[output].storage == output) lines[index(output)] = line_of(trace, op);
  return lines;
}

std::string_view operation_name(const Trace& trace, const Op& op) {
  const OpaqueRow* row = opaque_row(trace, op);
  return row ? std::string_view(row->operation) : to_string(op.kind);
}

Operands quantized_operands(const Trace& trace, const Op& op) {
  const OpaqueRow* row = opaque_row(trace, op);
  return row ? row->quantized : row_of(op.kind).quantized;
}

bool runs_once(const Trace& trace, const Op& op) {
  const OpaqueRow* row = opaque_row(trace, op);
  return row && row->runs_once;
}

Operands saved_operands(const Trace& trace, const Op& op, std::uint32_t inputs_with_gradient) {
  if (inputs_with_gradient == 0) return 0;
  Operands needs = op.also_keeps;
  for (std::uint32_t bits = inputs_with_gradient; bits != 0; bits &= bits - 1)
    needs |= gradient_rule(trace, op, static_cast<std::size_t>(std::countr_zero(bits))).needs;
  const Operands existing =
      ((Operands{1} << op.inputs) - 1) | (((Operands{1} << op.outputs) - 1) << 16);
  return needs & existing;
}

std::uint32_t inputs_with_gradient(const Trace& trace, const Op& op,
                                   std::span<const std::uint8_t> requires_gradient) {
  std::uint32_t bits = 0;
  const auto inputs = trace.inputs(op);
  for (std::size_t i = 0; i < inputs.size() && i < 16; ++i)
    if (requires_gradient[index(inputs[i])] != 0 && gradient_rule(trace, op, i).flow != Flow::None)
      bits |= std::uint32_t{1} << i;
  return bits;
}

std::vector<std::uint8_t> requires_gradient(const Trace& trace) {
  std::vector<std::uint8_t> required(trace.tensors.size());
  for (std::size_t t = 0; t < required.size(); ++t) required[t] = trace.tensors[t].trainable;
  for (const Op& op : trace.ops) {
    if (inputs_with_gradient(trace, op, required) == 0) continue;
    for (const TensorId output : trace.outputs(op))
      required[index(output)] = is_floating(trace[output].dtype);
  }
  return required;
}

}  // namespace tidemark
