// Places the state of weights that learn, and updates them: one by one, all in one node, or each as
// soon as its gradient is complete.
#include "simulator/graph/optimizer_nodes.h"

#include <utility>

#include "simulator/parallel/shards.h"
#include "traces/optimizer_of.h"

namespace tidemark {

OptimizerNodes::OptimizerNodes(const Trace& trace, const Needs& needs, GraphBuilder& graph,
                               PresentValues& values, PresentGradients& gradients)
    : trace_(trace),
      needs_(needs),
      framework_(find_framework(trace.step.framework)),
      parameters_are_cut_(parameters_are_cut(trace.step)),
      elements_(updated_elements(trace)),
      graph_(graph),
      values_(values),
      gradients_(gradients),
      state_(trace.tensors.size(), no_instance),
      complete_after_(trace.tensors.size(), no_op),
      is_updated_(trace.tensors.size()) {}

void OptimizerNodes::place_state() {
  // A weight that the loss does not depend on never gets a gradient, and so no state.
  for (std::size_t i = trace_.ops.size(); i-- > 0;)
    for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto input = static_cast<std::size_t>(__builtin_ctz(bits));
      complete_after_[index(trace_.inputs(trace_.ops[i])[input])] = static_cast<OpId>(i);
    }
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    if (needs_.producer[t] != no_op) continue;  // what ops make is no parameter
    const auto id = static_cast<TensorId>(t);
    if (trace_[id].category == Category::Parameter && trace_[id].storage == id)
      place_state(id, complete_after_[t] != no_op && trace_[id].trainable);
  }
}

void OptimizerNodes::place_state(TensorId parameter, bool learns) {
  const Tensor& tensor = local(parameter);
  const auto add = [&](Bytes size, Role role, Category category) {
    return graph_.add({.size = size,
                       .tensor = parameter,
                       .role = role,
                       .category = category,
                       .persistent = true});
  };
  // The moving average covers all weights, trained or not.
  if (trace_.step.ema.value_or(false))
    add(size(tensor), Role::OptimizerState, Category::OptimizerState);
  if (!learns) return;
  const OptimizerRow& row = row_of(parameter);
  const bool is_paged = paged_state_bytes(row, numel(tensor.shape)) > Bytes{};
  const Bytes state = state_bytes(row, tensor, trace_.step.master_weights);
  if (state > Bytes{} && !is_paged && !trace_.update)
    state_[index(parameter)] = add(state, Role::OptimizerState, Category::OptimizerState);
  if (framework_.gradients_persist || trace_.step.keep_gradients) gradients_.place(parameter);
  if (trace_.step.ddp) add(size(tensor), Role::Temporary, Category::Gradient);
}

// A tensor with its name is worth no copy where nothing is cut. Valid until the next call.
const Tensor& OptimizerNodes::local(TensorId parameter) {
  if (!elements_.empty() && trace_[parameter].trainable) {
    part_ = trace_[parameter];
    part_.shape = {elements_[index(parameter)]};
    return part_;
  }
  if (!parameters_are_cut_) return trace_[parameter];
  return part_ = local_parameter(trace_, parameter);
}

const OptimizerRow& OptimizerNodes::row_of(TensorId parameter) const {
  return optimizer_of(trace_, parameter);
}

OptimizerForm OptimizerNodes::form_of(const OptimizerRow& row) const {
  return update_form_of(trace_.step, row);
}

void OptimizerNodes::after_backward(OpId op, Lane lane) {
  if (!trace_.step.update_in_backward) return;
  for (const TensorId input : trace_.inputs(trace_[op])) {
    if (complete_after_[index(input)] != op || !waits_for_update(input)) continue;
    add_update(input);
    update(lane);
    named_.clear();  // the hook has returned, and its variables are gone
  }
}

void OptimizerNodes::append() {
  operation_.clear();
  append(tidemark::row_of(trace_.step.optimizer));
  append(tidemark::row_of(Optimizer::AdamW));              // what the step's own leaves to it
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t)  // zero_grad(set_to_none)
    if (const InstanceId gradient = gradients_.of(static_cast<TensorId>(t));
        gradient != no_instance && !trace_.step.update_in_backward)
      graph_.release(gradient);
}

void OptimizerNodes::append(const OptimizerRow& row) {
  std::vector<TensorId> updated;
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (!waits_for_update(id) || &row_of(id) != &row) continue;
    add_update(id);
    updated.push_back(id);
    if (!trace_.update && form_of(row) != OptimizerForm::Foreach) update(Lane::Compute);
  }
  if (operation_.writes().empty()) return;
  add_recorded_workspace(updated);
  update(Lane::Compute);
}

// Few tensors have a gradient left by then, so the small tables are asked first.
bool OptimizerNodes::waits_for_update(TensorId t) const {
  if (gradients_.of(t) == no_instance || is_updated_[index(t)]) return false;
  return trace_[t].category == Category::Parameter && trace_[t].trainable;
}

void OptimizerNodes::add_update(TensorId parameter) {
  is_updated_[index(parameter)] = true;
  operation_.read_again(gradients_.of(parameter));
  operation_.write(values_.write(parameter));
  InstanceId& state = state_[index(parameter)];
  if (state != no_instance) operation_.write(state = graph_.add_over(state));
  if (trace_.update) return;  // what it takes was recorded as a whole
  const OptimizerRow& row = row_of(parameter);
  const UpdateMemory memory =
      update_memory(row, *row.in(form_of(row)), local(parameter), trace_.step.l2_decay);
  add_temporaries(parameter, memory.released, nullptr);
  add_temporaries(parameter, memory.held, &now_named_);
}

// As many bytes as all weights have, or a multiple of that, are lists of PyTorch's foreach
// functions: a tensor for each weight. An allocator places many small ones unlike one large one.
void OptimizerNodes::add_recorded_workspace(const std::vector<TensorId>& updated) {
  const Bytes workspace = trace_.update ? trace_.update->pass.workspace : Bytes{};
  if (workspace == Bytes{}) return;
  Bytes weights;
  for (const TensorId parameter : updated) weights += size(local(parameter));
  if (weights == Bytes{} || workspace.count % weights.count != 0)
    return add_temporaries(no_tensor, {workspace}, nullptr);
  for (std::int64_t list = 0; list < workspace.count / weights.count; ++list)
    for (const TensorId parameter : updated)
      add_temporaries(parameter, {size(local(parameter))}, nullptr);
}

void OptimizerNodes::add_temporaries(TensorId parameter, const std::vector<Bytes>& sizes,
                                     std::vector<InstanceId>* named) {
  for (const Bytes size : sizes) {
    const InstanceId temporary = graph_.add({.size = size,
                                             .tensor = parameter,
                                             .role = Role::Temporary,
                                             .category = Category::Temporary});
    operation_.write(temporary);
    if (named) named->push_back(temporary);
  }
}

void OptimizerNodes::update(Lane lane) {
  graph_.append(Task::Optimizer, lane, no_op, operation_);
  operation_.clear();
  for (const InstanceId temporary : named_) graph_.release(temporary);
  named_ = std::exchange(now_named_, {});
}

}  // namespace tidemark
