// Follows gradients forward from what is trained, then keeps only the paths that reach the loss.
#include "simulator/needs.h"

namespace tidemark {
namespace {

// Gradients flow from the loss to what requires one; an op on no such path has no backward.
void keep_paths_to_loss(const Trace& trace, std::vector<std::uint32_t>& gradients) {
  std::vector<bool> reached(trace.tensors.size());
  if (trace.loss != no_tensor) reached[index(trace.loss)] = true;
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const Op& op = trace.ops[i];
    bool contributes = false;
    for (const TensorId output : trace.outputs(op)) contributes |= reached[index(output)];
    if (!contributes) gradients[i] = 0;
    const auto inputs = trace.inputs(op);
    for (std::uint32_t bits = gradients[i]; bits != 0; bits &= bits - 1)
      reached[index(inputs[static_cast<std::size_t>(__builtin_ctz(bits))])] = true;
  }
}

}  // namespace

std::vector<std::uint32_t> derive_gradients(const Trace& trace) {
  std::vector<std::uint32_t> gradients(trace.ops.size());
  const std::vector<bool> required = requires_gradient(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    gradients[i] = inputs_with_gradient(trace, trace.ops[i], required);
  keep_paths_to_loss(trace, gradients);
  return gradients;
}

bool shares_gradient(const Trace& trace, const Op& op, std::size_t input) {
  const Flow flow = gradient_rule(op.kind, input).flow;
  if (flow != Flow::Alias && flow != Flow::Reduced) return false;
  const Tensor& in = trace[trace.inputs(op)[input]];
  const Tensor& out = trace[trace.outputs(op)[0]];
  if (in.dtype != out.dtype) return false;
  return flow == Flow::Alias || numel(in.shape) == numel(out.shape);
}

Needs derive_needs(const Trace& trace) {
  Needs needs;
  needs.gradients = derive_gradients(trace);
  needs.saved.resize(trace.ops.size());
  needs.producer.assign(trace.tensors.size(), no_op);
  needs.uses.resize(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (const TensorId output : trace.outputs(op))
      if (trace[output].storage == output) needs.producer[index(output)] = static_cast<OpId>(i);
    needs.saved[i] = saved_operands(op, needs.gradients[i]);
    for_each_operand(trace, op, needs.saved[i],
                     [&](TensorId storage, TensorId) { ++needs.uses[index(storage)]; });
  }
  return needs;
}

}  // namespace tidemark
