// Places the state of weights that learn, and updates them one by one or all in one node.
#include "simulator/graph/optimizer_nodes.h"

namespace tidemark {

OptimizerNodes::OptimizerNodes(const Trace& trace, const Needs& needs, GraphBuilder& graph,
                               PresentValues& values, PresentGradients& gradients)
    : trace_(trace),
      needs_(needs),
      framework_(find_framework(trace.step.framework)),
      graph_(graph),
      values_(values),
      gradients_(gradients),
      state_(trace.tensors.size(), no_instance) {}

void OptimizerNodes::place_state() {
  // A weight that the loss does not depend on never gets a gradient, and so no state.
  std::vector<bool> learns(trace_.tensors.size());
  for (std::size_t i = 0; i < trace_.ops.size(); ++i)
    for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto input = static_cast<std::size_t>(__builtin_ctz(bits));
      learns[index(trace_.inputs(trace_.ops[i])[input])] = true;
    }
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (trace_[id].category == Category::Parameter && trace_[id].storage == id)
      place_state(id, learns[t] && trace_[id].trainable);
  }
}

void OptimizerNodes::place_state(TensorId parameter, bool learns) {
  const Tensor& tensor = trace_[parameter];
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
  const OptimizerRow& row = optimizers[static_cast<std::size_t>(trace_.step.optimizer)];
  const std::int64_t per_element = row.state_bytes ? row.state_bytes : size_of(tensor.dtype);
  if (row.states > 0 && !trace_.update)
    state_[index(parameter)] = add({row.states * per_element * numel(tensor.shape)},
                                   Role::OptimizerState, Category::OptimizerState);
  if (framework_.gradients_persist) gradients_.place(parameter);
  if (trace_.step.ddp) add(size(tensor), Role::Temporary, Category::Gradient);
}

void OptimizerNodes::append() {
  operation_.clear();
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    if (!is_updated(t)) continue;
    add_update(static_cast<TensorId>(t));
    if (!trace_.update && framework_.optimizer_loop != OptimizerLoop::Foreach) update();
  }
  if (!operation_.writes().empty()) {
    add_recorded_workspace();
    update();
  }
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t)  // zero_grad(set_to_none)
    if (const InstanceId gradient = gradients_.of(static_cast<TensorId>(t));
        gradient != no_instance)
      graph_.release(gradient);
}

bool OptimizerNodes::is_updated(std::size_t t) const {
  const Tensor& tensor = trace_.tensors[t];
  return tensor.category == Category::Parameter && tensor.trainable &&
         gradients_.of(static_cast<TensorId>(t)) != no_instance;
}

void OptimizerNodes::add_update(TensorId parameter) {
  operation_.read_again(gradients_.of(parameter));
  operation_.write(values_.write(parameter));
  InstanceId& state = state_[index(parameter)];
  if (state != no_instance) operation_.write(state = graph_.add_over(state));
  for (int i = 0; i < temporaries_per_parameter(); ++i)
    operation_.write(graph_.add({.size = size(trace_[parameter]),
                                 .tensor = parameter,
                                 .role = Role::Temporary,
                                 .category = Category::Temporary}));
}

void OptimizerNodes::add_recorded_workspace() {
  if (trace_.update && trace_.update->pass.workspace > Bytes{})
    operation_.write(graph_.add({.size = trace_.update->pass.workspace,
                                 .role = Role::Temporary,
                                 .category = Category::Temporary}));
}

void OptimizerNodes::update() {
  graph_.append(Task::Optimizer, Lane::Compute, no_op, operation_);
  operation_.clear();
}

// AdamW's eager kernels write sqrt(v) and, one parameter at a time, the denominator too; SGD's and
// the 8-bit optimizer's update in place.
int OptimizerNodes::temporaries_per_parameter() const {
  if (trace_.update || trace_.step.optimizer != Optimizer::AdamW) return 0;
  switch (framework_.optimizer_loop) {
    case OptimizerLoop::PerParameter:
      return 2;
    case OptimizerLoop::Foreach:
      return 1;
    case OptimizerLoop::Fused:
      break;
  }
  return 0;
}

}  // namespace tidemark
