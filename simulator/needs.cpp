// Follows gradients forward from what is trained, then keeps only the paths that reach the loss.
#include "simulator/needs.h"

#include <algorithm>

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

// What an op works in place on holds a later value: what wrote the earlier one would write over it,
// and what read that would read another.
std::vector<bool> ops_that_run_once(const Trace& trace) {
  std::vector<bool> once(trace.ops.size());
  const std::vector<OpId> overwritten = overwriters(trace);
  const auto is_overwritten = [](OpId by) { return by != no_op; };
  if (trace.opaque_rows.empty() && std::ranges::none_of(overwritten, is_overwritten)) return once;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const auto by = [&](TensorId tensor) { return overwritten[index(trace[tensor].storage)]; };
    once[i] = runs_once(trace, op);
    for (const TensorId output : trace.outputs(op)) once[i] = once[i] || by(output) != no_op;
    for (const TensorId input : trace.inputs(op))
      once[i] = once[i] || (by(input) != no_op && index(by(input)) > i);
  }
  return once;
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
  const Flow flow = gradient_rule(trace, op, input).flow;
  if (flow != Flow::Alias && flow != Flow::Reduced) return false;
  const Tensor& in = trace[trace.inputs(op)[input]];
  const Tensor& out = trace[trace.outputs(op)[0]];
  if (in.dtype != out.dtype) return false;
  return flow == Flow::Alias || numel(in.shape) == numel(out.shape);
}

std::vector<OpId> overwriters(const Trace& trace) {
  std::vector<OpId> found(trace.tensors.size(), no_op);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (!is_view(trace.ops[i].kind) && trace[output].storage != output)
        found[index(trace[output].storage)] = static_cast<OpId>(i);
  return found;
}

Needs derive_needs(const Trace& trace) {
  Needs needs;
  needs.gradients = derive_gradients(trace);
  needs.runs_once = ops_that_run_once(trace);
  needs.saved.resize(trace.ops.size());
  needs.producer.assign(trace.tensors.size(), no_op);
  needs.uses.resize(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (const TensorId output : trace.outputs(op))
      if (trace[output].storage == output) needs.producer[index(output)] = static_cast<OpId>(i);
    needs.saved[i] = saved_operands(trace, op, needs.gradients[i]);
    for_each_operand(trace, op, needs.saved[i],
                     [&](TensorId storage, TensorId) { ++needs.uses[index(storage)]; });
  }
  return needs;
}

}  // namespace tidemark
