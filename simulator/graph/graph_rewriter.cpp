// Renumbers what refers to nodes and instances: operands at once, holds and edges when their node
// and all that belongs to it is there.
#include "simulator/graph/graph_rewriter.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tidemark {
namespace {

std::size_t tensors_in(const JointGraph& graph) {
  std::size_t tensors = 0;
  for (const Instance& instance : graph.instances)
    if (instance.tensor != no_tensor) tensors = std::max(tensors, index(instance.tensor) + 1);
  return tensors;
}

}  // namespace

GraphRewriter::GraphRewriter(const JointGraph& old)
    : old_(old),
      graph_(tensors_in(old), old.nodes.size(), old.operands.size()),
      now_(old.instances.size(), no_instance),
      done_(old.nodes.size(), no_node),
      holds_(old.holds) {
  graph_.use(old.encodings);
  for (const Lane lane : old.lanes)
    if (lane != Lane::Compute) graph_.use(lane);
  std::ranges::stable_sort(holds_, {}, &Hold::until);
  for (std::size_t i = 0; i < now_.size(); ++i) {
    const Instance& instance = old.instances[i];
    if (instance.persistent && instance.over == no_instance) now_[i] = graph_.add(instance);
  }
}

NodeId GraphRewriter::copy_next() {
  CHECK(index(next_) < old_.nodes.size());
  end_node();
  operation_.clear();
  for (const InstanceId read : old_.reads(next())) {
    CHECK(now(read) != no_instance);
    operation_.read_again(now(read));
  }
  for (const InstanceId write : old_.writes(next())) operation_.write(written(write));
  const NodeId copied = append(next().task, next().lane, next().op, operation_);
  graph_.adds_to(next().input);
  next_ = static_cast<NodeId>(index(next_) + 1);
  is_ended_ = false;
  return copied;
}

void GraphRewriter::skip_next() {
  CHECK(index(next_) < old_.nodes.size());
  end_node();
  next_ = static_cast<NodeId>(index(next_) + 1);
  is_ended_ = false;
}

InstanceId GraphRewriter::written(InstanceId old) {
  const Instance& instance = old_[old];
  const InstanceId copied =
      instance.over == no_instance ? graph_.add(instance) : graph_.add_over(now(instance.over));
  replace(old, copied);
  return copied;
}

// Before the next node: what waits for the one before it knows now how far that goes.
void GraphRewriter::end_node() {
  if (std::exchange(is_ended_, true)) return;
  const auto ended = static_cast<NodeId>(index(next_) - 1);
  done_[index(ended)] = graph_.last_node(old_[ended].lane);
  for (; next_hold_ < holds_.size() && holds_[next_hold_].until <= ended; ++next_hold_)
    if (const InstanceId held = now(holds_[next_hold_].instance); held != no_instance)
      graph_.release(held);
  for (; next_edge_ < old_.edges.size() && old_.edges[next_edge_].from <= next_; ++next_edge_)
    graph_.order(done_[index(old_.edges[next_edge_].before)], old_.edges[next_edge_].lane);
}

InstanceId GraphRewriter::write_over(InstanceId old) {
  const InstanceId written = graph_.add_over(now(old));
  replace(old, written);
  return written;
}

Operation GraphRewriter::reads_of(const Node& node) const {
  Operation operation;
  for (const InstanceId read : old_.reads(node)) operation.read_again(now(read));
  return operation;
}

JointGraph GraphRewriter::finish() && {
  CHECK(index(next_) == old_.nodes.size());
  end_node();
  for (HandedOn handed_on : old_.handed_on) {
    handed_on.gradient = now(handed_on.gradient);
    if (handed_on.gradient != no_instance) graph_.hand_on(handed_on);
  }
  return std::move(graph_).finish();
}

}  // namespace tidemark
