#include "simulator/lowering/gradients.h"

namespace tidemark {

Gradients::Gradients(const Trace& trace, const Plan& plan, ScheduleWriter& writer)
    : trace_(trace),
      plan_(plan),
      framework_(find_framework(trace.step.framework)),
      writer_(writer),
      slot_(trace.tensors.size(), no_buffer) {}

void Gradients::place(TensorId parameter) {
  slot_[index(parameter)] =
      writer_.place(size(trace_[parameter]), parameter, Role::Gradient, Category::Gradient);
}

void Gradients::seed(OpId producer) {
  const TensorId loss = trace_.loss;
  slot_[index(loss)] =
      writer_.allocate(size(trace_[loss]), loss, Role::Gradient, Category::Temporary);
  writer_.begin_run();
  writer_.write(slot_[index(loss)]);
  writer_.run(Task::Seed, producer);
}

BufferId Gradients::allocate(TensorId tensor) {
  const bool becomes_leaf_gradient = is_leaf(tensor) && of(tensor) == no_buffer;
  return writer_.allocate(size(trace_[tensor]), tensor, Role::Gradient,
                          becomes_leaf_gradient ? Category::Gradient : Category::Temporary);
}

std::uint32_t& Gradients::references(BufferId buffer) {
  if (references_.size() <= index(buffer)) {
    references_.reserve(writer_.schedule().buffers.capacity());
    references_.resize(writer_.schedule().buffers.size(), 1);
  }
  return references_[index(buffer)];
}

void Gradients::unreference(BufferId buffer) {
  if (--references(buffer) > 0) return;
  const TensorId name = held_name(buffer);
  writer_.release(buffer, name == no_tensor ? no_op : plan_.gradient_release_after[index(name)]);
}

void Gradients::drop(TensorId tensor) {
  BufferId& slot = slot_[index(tensor)];
  if (slot != no_buffer) unreference(slot);
  slot = no_buffer;
}

void Gradients::accumulate(BufferId into, BufferId contribution, BufferId result) {
  writer_.begin_run();
  writer_.read(contribution);
  if (into != no_buffer) writer_.read_again(into);  // may be the same: then it holds both
  writer_.write(result);
  writer_.run(Task::Accumulate, writer_.position());
}

// A part of a concatenation's gradient is a view, and what others share must not change.
bool Gradients::adds_in_place(TensorId tensor) {
  const BufferId slot = of(tensor);
  const bool is_part = writer_.schedule()[slot].size != size(trace_[tensor]);
  return (is_leaf(tensor) || framework_.accumulates_in_place) && !is_part && references(slot) == 1;
}

void Gradients::contribute(TensorId tensor, BufferId contribution) {
  BufferId& slot = slot_[index(tensor)];
  if (slot == no_buffer) {
    const Category category = writer_.schedule()[contribution].category;
    if (!is_leaf(tensor) || category == Category::Gradient) {
      hold(contribution, tensor);
      slot = contribution;
      return;
    }
    slot = allocate(tensor);
    accumulate(no_buffer, contribution, slot);
    return unreference(contribution);
  }
  if (adds_in_place(tensor)) {
    accumulate(slot, contribution, slot);
    return unreference(contribution);
  }
  const BufferId sum = allocate(tensor);
  accumulate(slot, contribution, sum);
  // The variable still names the first contribution, unless that belongs to the block behind.
  if (held_name(slot) != tensor) hold(sum, tensor);
  unreference(slot);
  unreference(contribution);
  slot = sum;
}

TensorId Gradients::held_name(BufferId buffer) const {
  return index(buffer) < held_name_.size() ? held_name_[index(buffer)] : no_tensor;
}

void Gradients::hold(BufferId buffer, TensorId tensor) {
  const auto& held = plan_.gradient_release_after;
  if (held.empty() || held[index(tensor)] == no_op || held_name(buffer) != no_tensor) return;
  held_name_.resize(writer_.schedule().buffers.size(), no_tensor);
  held_name_[index(buffer)] = tensor;
}

}  // namespace tidemark
