// One backward node per op, but for gradients that are handed on; then a node per sum.
#include "simulator/graph/gradient_nodes.h"

#include "simulator/graph/forward_nodes.h"
#include "simulator/graph/inner_tensors.h"
#include "traces/engine_linear.h"
#include "traces/exchange_axis.h"

namespace tidemark {

void GradientNodes::append(OpId op, Lane lane) {
  const std::size_t i = index(op);
  bring_saved(i, lane);
  const InstanceId incoming = gradients_.of(trace_.outputs(trace_[op])[0]);
  add_input_gradients(i, incoming);
  append_backward(i, incoming, lane);
  release(i);
  for (const Contribution& c : contributions_)
    gradients_.contribute(c.tensor, c.gradient, {op, c.input, lane});
}

// What the backward decodes while it loads. Mesa's released code writes the values out first.
Operands GradientNodes::decoded(std::size_t i) const {
  if (plan_.quirks.copies_by_group || plan_.quirks.codes_per_use) return 0;
  const Op& op = trace_.ops[i];
  const Operands may_be = needs_.saved[i] & decoded_operands(op.kind);
  Operands decoded = 0;
  for (Operands bits = may_be; bits != 0; bits &= bits - 1) {
    const int bit = __builtin_ctz(bits);
    const TensorId storage = trace_[operand(trace_, op, bit)].storage;
    if (is_decoded_while_loading(encoding_of(plan_, storage))) decoded |= Operands{1} << bit;
  }
  return decoded;
}

void GradientNodes::bring_saved(std::size_t i, Lane lane) {
  const Op& op = trace_.ops[i];
  std::uint32_t use = values_.coded ? values_.coded->first_use(i) : 0;
  for_each_operand(trace_, op, needs_.saved[i] & ~decoded(i), [&](TensorId storage, TensorId) {
    const bool has_own_codes = values_.coded && values_.coded->has_use(use);
    if (has_own_codes && !values_.present.is_present(storage))
      values_.coded->dequantize_use(use, storage, lane);
    values_.ensure_present(storage, lane);
    ++use;
  });
  for_each_operand(trace_, op, decoded(i), [&](TensorId storage, TensorId) {
    if (!values_.is_value_or_codes(storage)) values_.ensure_present(storage, lane);
  });
}

// Some are written over a value that their own kernel is the only one to read, if it lies where
// the input does.
InstanceId GradientNodes::add_gradient(const Op& op, std::uint8_t k) {
  const TensorId input = trace_.inputs(op)[k];
  const Operands over = gradient_rule(trace_, op, k).over;
  if (over == 0) return gradients_.add(input);
  const TensorId value = trace_[operand(trace_, op, __builtin_ctz(over))].storage;
  if (needs_.uses[index(value)] > 1 || value != trace_[input].storage) return gradients_.add(input);
  return gradients_.add_over(input, values_.present.of(value));
}

// Gradients that alias the incoming one share it; the others get memory.
void GradientNodes::add_input_gradients(std::size_t i, InstanceId incoming) {
  const Op& op = trace_.ops[i];
  contributions_.clear();
  for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
    const auto k = static_cast<std::uint8_t>(__builtin_ctz(bits));
    const TensorId input = trace_.inputs(op)[k];
    if ((needs_.handed_on[i] >> k & 1) != 0) {
      gradients_.share(incoming);
      graph_.hand_on({incoming, static_cast<OpId>(i), k});
      contributions_.push_back({k, input, incoming});
    } else {
      contributions_.push_back({k, input, add_gradient(op, k)});
    }
  }
}

void GradientNodes::append_backward(std::size_t i, InstanceId incoming, Lane lane) {
  const Op& op = trace_.ops[i];
  operation_.clear();
  for (const TensorId output : trace_.outputs(op))
    if (gradients_.of(output) != no_instance) operation_.read(gradients_.of(output));
  for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
    values_.read_value_or_codes(storage, operation_);
  });
  for (const Contribution& c : contributions_)
    if (c.gradient != incoming) operation_.write(c.gradient);
  add_batched_weight_gradient(i);
  if (operation_.writes().empty()) return;  // all are handed on
  add_inner_tensors(i);
  if (const OpaqueRow* row = opaque_row(trace_, op))
    add_workspace(trace_, op, row->backward.workspace, graph_, operation_);
  graph_.append(Task::Backward, lane, static_cast<OpId>(i), operation_);
}

void GradientNodes::add_inner_tensors(std::size_t i) {
  const Op& op = trace_.ops[i];
  const BackwardCall call{.gradients = needs_.gradients[i],
                          .keeps_dy = gradients_.is_shared(trace_.outputs(op)[0]),
                          .made_again = values_.derived.recovery.reruns[i]};
  for (const Bytes inner : inner_tensors(trace_, op, call).sizes()) add_temporary(inner);
  if (const Bytes part = scattered_beside(op); part > Bytes{}) add_temporary(part);
}

void GradientNodes::add_temporary(Bytes size) {
  operation_.write(
      graph_.add({.size = size, .role = Role::Temporary, .category = Category::Temporary}));
}

// Megatron-LM's linears and Transformer Engine's scatter the gradient of what they gather beside
// the product for the weight's: its sum is there while all that this reads is, too
// (core/tensor_parallel/layers.py, pytorch/module/layernorm_linear.py).
Bytes GradientNodes::scattered_beside(const Op& op) const {
  if (op.kind != OpKind::Linear && !is_engine_product(trace_, op)) return {};
  const TensorId x = trace_.inputs(op)[0];
  const OpId producer = needs_.producer[index(trace_[x].storage)];
  const bool is_gathered = producer != no_op && trace_[producer].kind == OpKind::AllGather &&
                           exchange_axis(trace_, trace_[producer]) == Axis::Tensor;
  if (!is_gathered || !find_framework(trace_.step.framework).megatron) return {};
  return size(trace_[trace_.inputs(trace_[producer])[0]]);
}

// Mesa's published linear multiplies gᵀ·x per sample and sums afterwards.
void GradientNodes::add_batched_weight_gradient(std::size_t i) {
  const Op& op = trace_.ops[i];
  constexpr std::uint32_t of_weight = 2;
  if (!plan_.quirks.batched_weight_gradient || op.kind != OpKind::Linear ||
      (needs_.gradients[i] & of_weight) == 0)
    return;
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const Tensor& weight = trace_[trace_.inputs(op)[1]];
  if (x.shape.rank() < 3) return;
  operation_.write(graph_.add({.size = {x.shape[0] * size(weight).count},
                               .role = Role::Temporary,
                               .category = Category::Temporary}));
}

void GradientNodes::release(std::size_t i) {
  const auto at = static_cast<OpId>(i);
  const Op& op = trace_.ops[i];
  for (const TensorId output : trace_.outputs(op)) gradients_.drop(output, at);
  std::uint32_t use = values_.coded ? values_.coded->first_use(i) : 0;
  for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
    if (values_.coded && values_.coded->has_use(use)) {
      values_.present.drop(storage, at);
      values_.coded->release_use(use);
    } else if (values_.present.count_read(storage)) {
      values_.forget(storage, at);
    }
    ++use;
  });
}

}  // namespace tidemark
