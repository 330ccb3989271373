// Muon's users give it the hidden matrices; norms, biases, embeddings and heads stay with AdamW.
#include "traces/optimizer_of.h"

#include <algorithm>
#include <variant>

#include "traces/expert_ops.h"

namespace tidemark {
namespace {

// Megatron-LM gives it all matrices but words and heads, those of positions and routers and of each
// expert, too (_is_nonlinear_or_embedding() of core/optimizer/emerging_optimizers.py).
bool is_matrix_of_megatron(const Trace& trace, TensorId parameter) {
  bool is_matrix = trace[parameter].shape.rank() == 2;
  for (const Op& op : trace.ops) {
    const auto inputs = trace.inputs(op);
    if (std::ranges::find(inputs, parameter) == inputs.end()) continue;
    if (op.kind == OpKind::Linear && op.block < 0) return false;
    if (is_product_of_experts(trace, op)) is_matrix = true;
    if (op.kind != OpKind::Embedding) continue;
    const InputFill* const fill = fill_of(trace, trace[inputs[0]]);
    if (fill && std::holds_alternative<fill::Words>(*fill)) return false;
  }
  return is_matrix;
}

}  // namespace

const OptimizerRow& optimizer_of(const Trace& trace, TensorId parameter) {
  const OptimizerRow& row = row_of(trace.step.optimizer);
  if (row.value != Optimizer::Muon) return row;
  if (find_framework(trace.step.framework).megatron)
    return is_matrix_of_megatron(trace, parameter) ? row : row_of(Optimizer::AdamW);
  // Autocast's linears read a copy of the weight.
  const auto is_weight = [&](TensorId read) {
    if (read == parameter) return true;
    const auto makes_copy = [&](const Op& op) {
      return op.kind == OpKind::Cast && trace.inputs(op)[0] == parameter &&
             trace.outputs(op)[0] == read;
    };
    return std::ranges::any_of(trace.ops, makes_copy);
  };
  const auto is_hidden = [&](const Op& op) {
    return op.kind == OpKind::Linear && op.block >= 0 &&
           trace[trace.inputs(op)[1]].shape == trace[parameter].shape &&
           is_weight(trace.inputs(op)[1]);
  };
  const bool is_matrix = trace[parameter].shape.rank() == 2;
  return is_matrix && std::ranges::any_of(trace.ops, is_hidden) ? row : row_of(Optimizer::AdamW);
}

// get_state_buffer() of bitsandbytes' optim/optimizer.py: smaller ones are ordinary tensors.
Bytes paged_state_bytes(const OptimizerRow& row, std::int64_t elements) {
  constexpr std::int64_t fewest_paged = 100'000;
  if (!row.is_paged || elements < fewest_paged) return {};
  Tensor parameter;
  parameter.shape = {elements};
  return state_bytes(row, parameter, false);
}

OptimizerForm update_form_of(const StepOptions& step, const OptimizerRow& row) {
  return form_of(row, step.master_weights ? OptimizerForm::Fused : step.optimizer_form,
                 find_framework(step.framework).optimizer_form);
}

}  // namespace tidemark
