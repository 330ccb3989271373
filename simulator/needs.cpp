// Follows gradients forward from what is trained, then keeps only the paths that reach the loss.
#include "simulator/needs.h"

#include <algorithm>
#include <bit>

#include "traces/formula.h"

namespace tidemark {
namespace {

// Gradients flow from the loss to what requires one; an op on no such path has no backward.
void keep_paths_to_loss(const Trace& trace, std::vector<std::uint32_t>& gradients) {
  std::vector<std::uint8_t> reached(trace.tensors.size());
  if (trace.loss != no_tensor) reached[index(trace.loss)] = true;
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const Op& op = trace.ops[i];
    bool contributes = false;
    for (const TensorId output : trace.outputs(op)) contributes |= reached[index(output)] != 0;
    if (!contributes) gradients[i] = 0;
    const auto inputs = trace.inputs(op);
    for (std::uint32_t bits = gradients[i]; bits != 0; bits &= bits - 1)
      reached[index(inputs[static_cast<std::size_t>(__builtin_ctz(bits))])] = true;
  }
}

}  // namespace

void add_ops_on_earlier_versions(const Trace& trace, const Needs& needs,
                                 const std::vector<bool>& stays, std::vector<bool>& once) {
  const auto stays_as = [&](TensorId tensor, std::size_t from) {
    const TensorId storage = trace[tensor].storage;
    return stays[index(storage)] && index(needs.overwritten_by[index(storage)]) >= from;
  };
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (const TensorId output : trace.outputs(op)) once[i] = once[i] || stays_as(output, 0);
    for (const TensorId input : trace.inputs(op)) once[i] = once[i] || stays_as(input, i + 1);
  }
}

std::vector<std::uint32_t> derive_gradients(const Trace& trace) {
  std::vector<std::uint32_t> gradients(trace.ops.size());
  std::vector<std::uint8_t> required(trace.tensors.size());
  for (std::size_t t = 0; t < required.size(); ++t) required[t] = trace.tensors[t].trainable;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    gradients[i] = inputs_with_gradient(trace, op, required);
    if (gradients[i] == 0) continue;
    for (const TensorId output : trace.outputs(op))
      required[index(output)] = is_floating(trace[output].dtype);
  }
  keep_paths_to_loss(trace, gradients);
  return gradients;
}

namespace {

bool hands_on(const Trace& trace, const Op& op, std::size_t input) {
  const Flow flow = gradient_rule(trace, op, input).flow;
  if (flow != Flow::Alias && flow != Flow::Reduced) return false;
  const Tensor& in = trace[trace.inputs(op)[input]];
  const Tensor& out = trace[trace.outputs(op)[0]];
  if (in.dtype != out.dtype) return false;
  return flow == Flow::Alias || numel(in.shape) == numel(out.shape);
}

std::uint32_t handed_on(const Trace& trace, const Op& op, std::uint32_t gradients) {
  std::uint32_t handed_on = 0;
  for (std::uint32_t bits = gradients; bits != 0; bits &= bits - 1)
    if (hands_on(trace, op, static_cast<std::size_t>(std::countr_zero(bits))))
      handed_on |= bits & -bits;
  return handed_on;
}

}  // namespace

OpId last_that_packs(const Trace& trace, const Needs& needs, OpId begin, OpId end) {
  for (std::size_t i = index(end); i-- > index(begin);)
    if (needs.saved[i] != 0 && trace.ops[i].kind != OpKind::Scale) return static_cast<OpId>(i);
  return no_op;
}

OpId end_of_reruns(const Trace& trace, const Needs& needs, OpId begin, OpId end) {
  const OpId last = last_that_packs(trace, needs, begin, end);
  if (last == no_op) return begin;
  const bool runs = needs.saved[index(last)] >= output_bit(0);
  return static_cast<OpId>(runs ? index(last) + 1 : index(last));
}

namespace {

// An opaque op that nobody knows may make and read more than it says.
bool is_unknown(const Trace& trace, OpId op) {
  const OpaqueRow* row = opaque_row(trace, trace[op]);
  return row && row->computes == Formula::None;
}

// What one block makes, changes in place and leaves to no gradient may be made again with all that
// wrote it: scores under a mask, what experts give before it is weighted. Anything else stays as
// its last op in place has left it, and so does what unknown ops change.
bool may_be_made_again(const Trace& trace, const Needs& needs, std::size_t storage) {
  const OpId first = needs.producer[storage], last = needs.overwritten_by[storage];
  if (first == no_op || last == no_op || needs.uses[storage] > 0) return false;
  if (is_unknown(trace, first) || is_unknown(trace, last)) return false;
  return trace[first].block >= 0 && trace[first].block == trace[last].block;
}

std::vector<bool> ops_that_run_once(const Trace& trace, const Needs& needs) {
  std::vector<bool> once(trace.ops.size()), stays(trace.tensors.size());
  if (!trace.opaque_rows.empty())
    for (std::size_t i = 0; i < once.size(); ++i) once[i] = runs_once(trace, trace.ops[i]);
  bool is_any = false;
  for (std::size_t s = 0; s < stays.size(); ++s) {
    stays[s] = needs.overwritten_by[s] != no_op && !may_be_made_again(trace, needs, s);
    is_any = is_any || stays[s];
  }
  if (is_any) add_ops_on_earlier_versions(trace, needs, stays, once);
  return once;
}

}  // namespace

Needs derive_needs(const Trace& trace) {
  Needs needs;
  const std::size_t ops = trace.ops.size(), tensors = trace.tensors.size();
  needs.gradients = derive_gradients(trace);
  needs.handed_on.resize(ops);
  needs.saved.resize(ops);
  needs.uses.resize(tensors);
  for (auto* by_storage : {&needs.producer, &needs.last_read, &needs.overwritten_by})
    by_storage->assign(tensors, no_op);
  for (std::size_t i = 0; i < ops; ++i) {
    const Op& op = trace.ops[i];
    const auto id = static_cast<OpId>(i);
    for (const TensorId input : trace.inputs(op)) needs.last_read[index(trace[input].storage)] = id;
    for (const TensorId output : trace.outputs(op)) {
      const TensorId storage = trace[output].storage;
      if (storage == output)
        needs.producer[index(output)] = id;
      else if (!is_view(op.kind))
        needs.overwritten_by[index(storage)] = id;
    }
    needs.handed_on[i] = handed_on(trace, op, needs.gradients[i]);
    needs.saved[i] = saved_operands(trace, op, needs.gradients[i]);
    for_each_operand(trace, op, needs.saved[i],
                     [&](TensorId storage, TensorId) { ++needs.uses[index(storage)]; });
  }
  needs.runs_once = ops_that_run_once(trace, needs);
  return needs;
}

}  // namespace tidemark
