// Adds operands up by the rule of each gradient; inputs whose gradients share a kernel count once.
#include "simulator/cost/traffic.h"

#include <algorithm>
#include <bit>

#include "simulator/parallel/fused_gradients.h"
#include "simulator/parallel/split_backward.h"

namespace tidemark {
namespace {

// The one kind that stands for a fused kernel, too, which writes no normalized tensor.
bool is_fused(const Op& op) { return op.kind == OpKind::RmsNorm && op.outputs <= 2; }

GradientRule rule_of(const Trace& trace, const Op& op, std::size_t input) {
  using namespace rules;
  GradientRule rule = gradient_rule(trace, op, input);
  if (is_fused(op)) rule.kernels = 1, rule.passes = 0;
  // A composed norm's weight meets the normalized tensor, not what that was made of.
  if (op.kind == OpKind::RmsNorm && !is_fused(op) && input == 1) rule.unread = x0 | y1;
  return rule;
}

// Whose kernel writes the gradient of `input`?
std::size_t leader(const Trace& trace, const Op& op, std::size_t input) {
  while (input > 0 && gradient_rule(trace, op, input).kernels == 0) --input;
  return input;
}

}  // namespace

Traffic::Traffic(const Trace& trace, const Needs& needs)
    : trace_(trace),
      needs_(needs),
      of_weights_(gradients_of_weights(trace)),
      has_gradient_(trace.tensors.size()),
      adds_to_main_(fuses_accumulation(trace.step)) {
  if (trace.loss != no_tensor) has_gradient_[index(trace.loss)] = true;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (std::uint32_t bits = needs.gradients[i]; bits != 0; bits &= bits - 1)
      has_gradient_[index(
          trace.inputs(trace.ops[i])[static_cast<std::size_t>(std::countr_zero(bits))])] = true;
}

std::uint32_t Traffic::gradients_in(Task task, OpId op) const {
  const std::uint32_t all = needs_.gradients[index(op)];
  if (of_weights_.empty()) return task == Task::Backward ? all : 0;
  const std::uint32_t of_weights = of_weights_[index(op)];
  return task == Task::Backward ? all & ~of_weights : of_weights;
}

// Intermediates have the elements of the output, in the wider of the formats around them.
double Traffic::bytes_of_passes(const Op& op, int passes) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const Tensor& y = trace_[trace_.outputs(op)[0]];
  const std::int64_t width =
      is_floating(x.dtype) ? std::max(size_of(x.dtype), size_of(y.dtype)) : size_of(y.dtype);
  return passes * elements(trace_.outputs(op)[0]) * static_cast<double>(width);
}

int Traffic::forward_kernels(const Op& op) const {
  if (const OpaqueRow* row = opaque_row(trace_, op)) return row->forward.kernels;
  return is_fused(op) ? 1 : row_of(op.kind).kernels;
}

double Traffic::forward(const Op& op) const {
  const OpRow& row = row_of(op.kind);
  const OpaqueRow* own = opaque_row(trace_, op);
  if (own && own->forward.moved) return static_cast<double>(own->forward.moved->count);
  const auto inputs = trace_.inputs(op), outputs = trace_.outputs(op);
  const int passes = is_fused(op) ? 0 : row.passes;
  double sum = passes == 0 ? 0 : bytes_of_passes(op, passes);
  for (const TensorId input : inputs) sum += bytes(input);
  for (const TensorId output : outputs) sum += bytes(output);
  if (row.work == Work::GatherRows) sum += bytes(outputs[0]) - bytes(inputs[1]);
  if (row.work == Work::PickOnePerRow)
    sum += elements(inputs[1]) * static_cast<double>(size_of(trace_[inputs[0]].dtype)) -
           bytes(inputs[0]);
  return sum;
}

double Traffic::saved_bytes(const Schedule& schedule, const Run& run, TensorId tensor) const {
  const TensorId storage = trace_[tensor].storage;
  for (const BufferId id : schedule.reads(run)) {
    const Buffer& buffer = schedule[id];
    if (buffer.role != Role::Codes || buffer.tensor != storage) continue;
    const auto codes = static_cast<double>(buffer.size.count);
    return tensor == storage ? codes : codes * elements(tensor) / elements(storage);
  }
  return bytes(tensor);
}

// A part of a concatenation reads its own part of the gradient.
double Traffic::incoming_bytes(const Op& op, std::size_t input) const {
  const auto outputs = trace_.outputs(op);
  if (gradient_rule(trace_, op, input).flow == Flow::Alias)
    return elements(trace_.inputs(op)[input]) *
           static_cast<double>(size_of(trace_[outputs[0]].dtype));
  double sum = 0;
  for (const TensorId output : outputs)
    if (has_gradient_[index(output)]) sum += bytes(output);
  return sum;
}

// A main gradient is read and written, in fp32 or as its weight.
double Traffic::written_bytes(const Op& op, std::size_t input) const {
  const TensorId written = trace_.inputs(op)[input];
  if (!adds_to_main_ || written != weight_of_product(trace_, op)) return bytes(written);
  const bool is_wide = trace_.step.shard->gradients_are_wide;
  const std::int64_t element = size_of(is_wide ? DType::Float32 : trace_[written].dtype);
  return 2 * elements(written) * static_cast<double>(element);
}

// One sequence of kernels writes all gradients that there are.
GradientTraffic Traffic::opaque_backward(const Schedule& schedule, const Run& run) const {
  const Op& op = trace_[run.op];
  const OpaquePass& pass = opaque_row(trace_, op)->backward;
  const std::uint32_t gradients = gradients_in(run.task, run.op);
  GradientTraffic all{static_cast<std::size_t>(std::countr_zero(gradients)), pass.kernels,
                      incoming_bytes(op, 0), elements(trace_.outputs(op)[0])};
  for_each_operand(trace_, op, opaque_row(trace_, op)->saved, [&](TensorId, TensorId tensor) {
    all.bytes += saved_bytes(schedule, run, tensor);
  });
  double added = 0;  // of main gradients, which no row knows
  for (std::uint32_t bits = gradients; bits != 0; bits &= bits - 1) {
    const auto input = static_cast<std::size_t>(std::countr_zero(bits));
    const TensorId written = trace_.inputs(op)[input];
    all.bytes += bytes(written);
    all.elements = std::max(all.elements, elements(written));
    added += written_bytes(op, input) - bytes(written);
  }
  if (pass.moved) all.bytes = static_cast<double>(pass.moved->count);
  all.bytes += added;
  return all;
}

GradientTraffics Traffic::backward(const Schedule& schedule, const Run& run) const {
  const Op& op = trace_[run.op];
  GradientTraffics all;
  if (op.kind == OpKind::Opaque) {
    all.add(opaque_backward(schedule, run));
    return all;
  }
  const std::uint32_t gradients = gradients_in(run.task, run.op);
  const std::uint32_t written_by_kernels = gradients & ~needs_.handed_on[index(run.op)];
  Operands unread = 0;  // of what is saved, by the kernels at hand
  std::size_t last = op.inputs;
  for (std::uint32_t bits = written_by_kernels; bits != 0; bits &= bits - 1) {
    const auto input = static_cast<std::size_t>(std::countr_zero(bits));
    if (const std::size_t first = leader(trace_, op, input); first != last) {
      const GradientRule rule = rule_of(trace_, op, first);
      all.add({input, rule.kernels, incoming_bytes(op, input) + bytes_of_passes(op, rule.passes),
               elements(trace_.outputs(op)[0])});
      last = first, unread = needs_.saved[index(run.op)];
    }
    const GradientRule rule = rule_of(trace_, op, input);
    const Operands read = rule.needs & ~rule.unread & unread;
    unread &= ~read;
    GradientTraffic& kernels = all.back();
    for_each_operand(trace_, op, read, [&](TensorId, TensorId tensor) {
      kernels.bytes += saved_bytes(schedule, run, tensor);
    });
    const TensorId written = trace_.inputs(op)[input];
    kernels.bytes += written_bytes(op, input);
    kernels.elements = std::max(kernels.elements, elements(written));
  }
  return all;
}

}  // namespace tidemark
