#include "simulator/lowering/optimizer_step.h"

namespace tidemark {

OptimizerStep::OptimizerStep(const Trace& trace, const Needs& needs, ScheduleWriter& writer,
                             Values& values, Gradients& gradients)
    : trace_(trace),
      needs_(needs),
      framework_(find_framework(trace.step.framework)),
      writer_(writer),
      values_(values),
      gradients_(gradients),
      state_(trace.tensors.size(), no_buffer) {}

void OptimizerStep::place_state() {
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

void OptimizerStep::place_state(TensorId parameter, bool learns) {
  const Tensor& tensor = trace_[parameter];
  // The moving average covers all weights, trained or not.
  if (trace_.step.ema.value_or(false))
    writer_.place(size(tensor), parameter, Role::OptimizerState, Category::OptimizerState);
  if (!learns) return;
  const OptimizerRow& row = optimizers[static_cast<std::size_t>(trace_.step.optimizer)];
  const std::int64_t per_element = row.state_bytes ? row.state_bytes : size_of(tensor.dtype);
  if (row.states > 0)
    state_[index(parameter)] =
        writer_.place({row.states * per_element * numel(tensor.shape)}, parameter,
                      Role::OptimizerState, Category::OptimizerState);
  if (framework_.gradients_persist) gradients_.place(parameter);
  if (trace_.step.ddp) writer_.place(size(tensor), parameter, Role::Temporary, Category::Gradient);
}

void OptimizerStep::run() {
  writer_.begin_run();
  temporary_.clear();
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
    if (!is_updated(t)) continue;
    add_update(static_cast<TensorId>(t));
    if (framework_.optimizer_loop != OptimizerLoop::Foreach) update();
  }
  if (writer_.writes_something()) update();
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t)  // zero_grad(set_to_none)
    if (const BufferId gradient = gradients_.of(static_cast<TensorId>(t)); gradient != no_buffer)
      writer_.free(gradient);
}

bool OptimizerStep::is_updated(std::size_t t) const {
  const Tensor& tensor = trace_.tensors[t];
  return tensor.category == Category::Parameter && tensor.trainable &&
         gradients_.of(static_cast<TensorId>(t)) != no_buffer;
}

void OptimizerStep::add_update(TensorId parameter) {
  writer_.read_again(gradients_.of(parameter));
  writer_.write_new(values_.of(parameter));
  if (state_[index(parameter)] != no_buffer) writer_.write_new(state_[index(parameter)]);
  for (int i = 0; i < temporaries_per_parameter(); ++i) {
    temporary_.push_back(
        writer_.allocate(size(trace_[parameter]), parameter, Role::Temporary, Category::Temporary));
    writer_.write_new(temporary_.back());
  }
}

void OptimizerStep::update() {
  writer_.run(Task::Optimizer, no_op);
  for (const BufferId buffer : temporary_) writer_.free(buffer);
  temporary_.clear();
  writer_.begin_run();
}

// AdamW's eager kernels write sqrt(v) and, one parameter at a time, the denominator too; SGD's and
// the 8-bit optimizer's update in place.
int OptimizerStep::temporaries_per_parameter() const {
  if (trace_.step.optimizer != Optimizer::AdamW) return 0;
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
