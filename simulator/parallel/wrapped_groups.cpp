// Who reads a parameter decides whose it is: one block alone, or the root.
#include "simulator/parallel/wrapped_groups.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr std::int32_t root_owner = -1, nobody = -2;

std::vector<std::int32_t> owners(const Trace& trace) {
  std::vector<std::int32_t> owner(trace.tensors.size(), nobody);
  for (const Op& op : trace.ops)
    for (const TensorId input : trace.inputs(op)) {
      std::int32_t& of = owner[index(trace[input].storage)];
      of = of == nobody || of == op.block ? op.block : root_owner;
    }
  return owner;
}

// By op; blocks without parameters of their own belong to the root.
std::vector<std::size_t> groups_by_op(const Trace& trace, const std::vector<WrappedGroup>& groups) {
  std::vector<std::size_t> of_block(trace.blocks.size());
  for (std::size_t g = 1; g < groups.size(); ++g)
    of_block[static_cast<std::size_t>(trace[groups[g].first_op].block)] = g;
  std::vector<std::size_t> of_op(trace.ops.size());
  for (std::size_t i = 0; i < of_op.size(); ++i)
    if (trace.ops[i].block >= 0) of_op[i] = of_block[static_cast<std::size_t>(trace.ops[i].block)];
  return of_op;
}

bool begins_pass(const Node& node, const Pass& pass) {
  if (pass.is_backward) return node.task == Task::Forward;
  return node.task == Task::Seed || node.task == Task::Backward;
}

}  // namespace

std::vector<WrappedGroup> wrapped_groups(const Trace& trace) {
  std::vector<WrappedGroup> by_block(trace.blocks.size() + 1);
  const std::vector<std::int32_t> owner = owners(trace);
  for (std::size_t t = 0; t < owner.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    if (tensor.category != Category::Parameter || tensor.storage != static_cast<TensorId>(t))
      continue;
    by_block[static_cast<std::size_t>(std::max(owner[t], root_owner) + 1)].parameters.push_back(
        static_cast<TensorId>(t));
  }
  for (std::size_t b = 0; b < trace.blocks.size(); ++b)
    by_block[b + 1].first_op = trace.blocks[b].begin;
  std::vector<WrappedGroup> groups = {by_block.front()};
  for (std::size_t b = 1; b < by_block.size(); ++b)
    if (!by_block[b].parameters.empty()) groups.push_back(std::move(by_block[b]));
  return groups;
}

std::vector<Pass> passes_of(const Trace& trace, const JointGraph& graph,
                            const std::vector<WrappedGroup>& groups) {
  const std::vector<std::size_t> group_of = groups_by_op(trace, groups);
  std::vector<Pass> passes;
  const auto begin = [&](std::size_t n, bool is_backward) {
    const std::vector<NodeId> none(groups.size(), no_node);
    passes.push_back({is_backward, static_cast<NodeId>(n), static_cast<NodeId>(n), none, none});
  };
  begin(0, false);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.task == Task::Optimizer) break;
    if (begins_pass(node, passes.back())) begin(n, !passes.back().is_backward);
    Pass& pass = passes.back();
    pass.end = static_cast<NodeId>(n + 1);
    if (node.op == no_op) continue;
    const std::size_t group = group_of[index(node.op)];
    if (pass.enter[group] == no_node) pass.enter[group] = static_cast<NodeId>(n);
    pass.leave[group] = static_cast<NodeId>(n + 1);
  }
  for (Pass& pass : passes) pass.enter[0] = pass.begin, pass.leave[0] = pass.end;
  return passes;
}

}  // namespace tidemark
