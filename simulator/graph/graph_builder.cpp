// Numbers the versions of each tensor, and notes the last use of memory as nodes are appended.
#include "simulator/graph/graph_builder.h"

#include <algorithm>

#include "base/large_pages.h"

namespace tidemark {

void Operation::read(InstanceId instance) {
  if (std::ranges::find(reads_, instance) == reads_.end()) reads_.push_back(instance);
}

GraphBuilder::GraphBuilder(std::size_t tensors, std::size_t ops, std::size_t operands)
    : tensors_(tensors) {
  last_of_lane_.fill(no_node);
  reserve_in_large_pages(graph_.instances, 2 * tensors + operands);
  reserve_in_large_pages(graph_.nodes, 3 * ops);
  reserve_in_large_pages(graph_.operands, 4 * operands);
  reserve_in_large_pages(memory_, graph_.instances.capacity());
}

InstanceId GraphBuilder::add_over(InstanceId old) {
  Instance instance = graph_[old];
  instance.over = old;
  return add(instance);
}

NodeId GraphBuilder::append(std::optional<Task> task, Lane lane, OpId op,
                            const Operation& operation) {
  const auto id = static_cast<NodeId>(graph_.nodes.size());
  const auto first = static_cast<std::uint32_t>(graph_.operands.size());
  graph_.nodes.push_back({task, lane, 0, op, first,
                          static_cast<std::uint32_t>(operation.reads().size()),
                          static_cast<std::uint32_t>(operation.writes().size())});
  for (const auto* list : {&operation.reads(), &operation.writes()}) {
    graph_.operands.insert(graph_.operands.end(), list->begin(), list->end());
    for (const InstanceId instance : *list) memory_[index(memory_of(instance))].last_use = id;
  }
  return last_ = last_of_lane_[index(lane)] = id;
}

void GraphBuilder::order(NodeId before, Lane lane) {
  if (before != no_node)
    graph_.edges.push_back({before, lane, static_cast<NodeId>(graph_.nodes.size())});
}

void GraphBuilder::hold(InstanceId instance, NodeId until) {
  const InstanceId memory = memory_of(instance);
  NodeId& last = memory_[index(memory)].last_use;
  if (until == no_node || graph_[memory].persistent || last == until) return;
  graph_.holds.push_back({memory, until});
  last = until;
}

}  // namespace tidemark
