// Counts who shares a gradient, and sums contributions in place only where nobody else sees it.
#include "simulator/graph/present_gradients.h"

#include <bit>

namespace tidemark {
namespace {

// By tensor: how many gradients come together.
std::vector<std::uint32_t> count_gradients(const Trace& trace, const Needs& needs) {
  std::vector<std::uint32_t> counts(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (std::uint32_t bits = needs.gradients[i]; bits != 0; bits &= bits - 1)
      ++counts[index(trace.inputs(trace.ops[i])[static_cast<std::size_t>(std::countr_zero(bits))])];
  return counts;
}

// By tensor: itself if it is a parameter, or the one whose first gradient of several is this one's,
// which a view hands on; or no_tensor. An only gradient is copied: it bears the parameter's name.
std::vector<TensorId> leaves_behind(const Trace& trace, const Needs& needs) {
  std::vector<TensorId> leaves(trace.tensors.size(), no_tensor);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (trace.tensors[i].trainable) leaves[i] = static_cast<TensorId>(i);
  const std::vector<std::uint32_t> gradients = count_gradients(trace, needs);
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::View) continue;
    const TensorId read = trace.inputs(op)[0];
    if (gradients[index(read)] > 1) leaves[index(trace.outputs(op)[0])] = leaves[index(read)];
  }
  return leaves;
}

}  // namespace

PresentGradients::PresentGradients(const Trace& trace, const Plan& plan, const Needs& needs,
                                   GraphBuilder& graph, NamedInstances& names)
    : trace_(trace),
      plan_(plan),
      framework_(find_framework(trace.step.framework)),
      graph_(graph),
      names_(names),
      slot_(trace.tensors.size(), no_instance),
      holds_view_(trace.tensors.size()),
      leaf_behind_(leaves_behind(trace, needs)) {}

void PresentGradients::place(TensorId parameter) {
  slot_[index(parameter)] = graph_.add({.size = size(trace_[parameter]),
                                        .tensor = parameter,
                                        .role = Role::Gradient,
                                        .category = Category::Gradient,
                                        .persistent = true});
}

void PresentGradients::seed(OpId producer) {
  holds_view_.assign(holds_view_.size(), false);
  const TensorId loss = trace_.loss;
  slot_[index(loss)] = graph_.add({.size = size(trace_[loss]),
                                   .tensor = loss,
                                   .role = Role::Gradient,
                                   .category = Category::Temporary});
  seed_ = of(loss);
  operation_.clear();
  operation_.write(seed_);
  graph_.append(Task::Seed, Lane::Compute, producer, operation_);
}

void PresentGradients::end_seed() {
  if (seed_ != no_instance) graph_.release(seed_);
  seed_ = no_instance;
}

InstanceId PresentGradients::add(TensorId tensor) {
  const TensorId leaf = leaf_behind_[index(tensor)];
  const bool becomes_leaf_gradient = leaf != no_tensor && of(leaf) == no_instance;
  return make(tensor, becomes_leaf_gradient ? Category::Gradient : Category::Temporary);
}

InstanceId PresentGradients::make(TensorId tensor, Category category) {
  return graph_.add({.size = size(trace_[tensor]),
                     .tensor = tensor,
                     .role = Role::Gradient,
                     .category = category});
}

InstanceId PresentGradients::add_over(TensorId tensor, InstanceId value) {
  return graph_.add({.size = size(trace_[tensor]),
                     .tensor = tensor,
                     .role = Role::Gradient,
                     .category = Category::Temporary,
                     .over = value});
}

std::uint32_t& PresentGradients::references(InstanceId gradient) {
  if (references_.size() <= index(gradient)) {
    references_.reserve(graph_.graph().instances.capacity());
    references_.resize(graph_.graph().instances.size(), 1);
  }
  return references_[index(gradient)];
}

void PresentGradients::unreference(InstanceId gradient, OpId at) {
  if (--references(gradient) > 0) return;
  const TensorId tensor = name_of(gradient);
  const OpId until = tensor == no_tensor ? no_op : plan_.gradient_release_after[index(tensor)];
  names_.release(gradient, until, at);
}

void PresentGradients::drop(TensorId tensor, OpId at) {
  InstanceId& slot = slot_[index(tensor)];
  if (slot != no_instance) unreference(slot, at);
  slot = no_instance;
}

// A linear's backward hands on views of what it makes for its weight (a product, transposed), its
// bias (a sum, with fewer axes) and an input of more axes than two (a product of matrices). So does
// what a view op stands for.
bool PresentGradients::is_view(TensorId tensor, BackwardPlace made_at) const {
  const OpKind kind = trace_.ops[index(made_at.op)].kind;
  if (kind != OpKind::Linear) return kind == OpKind::View;
  return made_at.input > 0 ? is_leaf(tensor) : trace_[tensor].shape.rank() > 2;
}

// A part of a concatenation's gradient is a view, and what others share must not change. Nor is a
// first gradient added to that is_view() (can_accumulate_inplace() of
// torch/csrc/autograd/input_buffer.cpp); the sum of two is none any more.
bool PresentGradients::adds_in_place(TensorId tensor) {
  if (holds_view_[index(tensor)]) return false;
  const InstanceId slot = of(tensor);
  const bool is_part = graph_[slot].size != size(trace_[tensor]);
  return (is_leaf(tensor) || framework_.accumulates_in_place) && !is_part && references(slot) == 1;
}

// A weight takes over a gradient that is a view of a larger one, whose memory stays for its sake: a
// part of what an opaque concatenation hands back, where it has no gaps, cut along the first axis
// longer than one (AccumulateGrad::accumulateGrad() of
// torch/csrc/autograd/functions/accumulate_grad.h).
bool PresentGradients::takes_part(TensorId tensor, InstanceId contribution,
                                  BackwardPlace at) const {
  const Op& op = trace_.ops[index(at.op)];
  if (op.kind != OpKind::Opaque || graph_[contribution].size == size(trace_[tensor])) return false;
  const Shape &part = trace_[tensor].shape, &whole = trace_[trace_.outputs(op)[0]].shape;
  if (part.rank() != whole.rank()) return false;
  std::size_t axis = 0;
  while (axis < whole.rank() && whole[axis] == 1) ++axis;
  for (std::size_t i = axis + 1; i < whole.rank(); ++i)
    if (part[i] != whole[i]) return false;
  return axis < whole.rank();
}

void PresentGradients::contribute(TensorId tensor, InstanceId contribution, BackwardPlace at) {
  InstanceId& slot = slot_[index(tensor)];
  const bool is_first = slot == no_instance;
  if (is_first && (!is_leaf(tensor) || graph_[contribution].category == Category::Gradient ||
                   takes_part(tensor, contribution, at))) {
    name(contribution, tensor);
    slot = contribution;
    holds_view_[index(tensor)] = is_view(tensor, at);
    return;
  }
  const bool in_place = !is_first && adds_in_place(tensor);
  const InstanceId sum =
      in_place ? graph_.add_over(slot)
               : make(tensor, is_leaf(tensor) ? Category::Gradient : Category::Temporary);
  operation_.clear();
  operation_.read(contribution);
  if (!is_first) operation_.read_again(slot);  // may be the same: then it holds both
  operation_.write(sum);
  graph_.append(Task::Accumulate, at.lane, at.op, operation_);
  graph_.adds_to(at.input);
  holds_view_[index(tensor)] = false;
  if (!is_first && !in_place) {
    // The variable still names the first contribution, unless that belongs to the block behind.
    if (name_of(slot) != tensor) name(sum, tensor);
    unreference(slot, at.op);
  }
  if (in_place) name(sum, name_of(slot));
  unreference(contribution, at.op);
  slot = sum;
}

TensorId PresentGradients::name_of(InstanceId gradient) const {
  return index(gradient) < name_.size() ? name_[index(gradient)] : no_tensor;
}

void PresentGradients::name(InstanceId gradient, TensorId tensor) {
  const auto& until = plan_.gradient_release_after;
  if (until.empty() || tensor == no_tensor || until[index(tensor)] == no_op ||
      name_of(gradient) != no_tensor)
    return;
  name_.resize(graph_.graph().instances.size(), no_tensor);
  name_[index(gradient)] = tensor;
}

}  // namespace tidemark
