// Copies a joint graph node by node while a pass adds nodes of its own, or leaves some out.
// Example, of a pass that runs each recomputed op once more:
//
//   GraphRewriter rewriter(graph);
//   for (const Node& node : graph.nodes) {
//     rewriter.copy_next();
//     if (node.task != Task::Recompute) continue;
//     Operation again = rewriter.reads_of(node);
//     for (const InstanceId old : graph.writes(node)) again.write(rewriter.write_over(old));
//     rewriter.append(node.task, node.lane, node.op, again);
//   }
//   return std::move(rewriter).finish();
#pragma once

#include "simulator/graph/graph_builder.h"

namespace tidemark {

class GraphRewriter {
 public:
  /// What is persistent is there from the start.
  explicit GraphRewriter(const JointGraph& old);

  /// The old graph's next node as it is, but that it reads what now stands for its operands. What
  /// the pass appends until the following one is copied belongs to this: edges and holds that wait
  /// for the node wait for that, too.
  NodeId copy_next();
  /// The next node is left out, or comes later. The pass says what stands for its results before
  /// they are read; what was held for it and is not there yet is free with its last use.
  void skip_next();
  /// What the pass appends from now on belongs to no node: nothing that waits for the last one
  /// waits for it.
  void end_node();
  /// A node of the pass's own.
  NodeId append(std::optional<Task> task, Lane lane, OpId op, const Operation& operation) {
    return graph_.append(task, lane, op, operation);
  }

  /// As GraphBuilder::adds_to(), of a node of the pass's own.
  void adds_to(std::uint8_t input) { graph_.adds_to(input); }

  /// Nodes of the pass's own go to this lane, too.
  void use(Lane lane) { graph_.use(lane); }
  /// What comes next on the lane happens after `before`, a node of the new graph, or no_node.
  void order(NodeId before, Lane lane) { graph_.order(before, lane); }

  /// An instance of the pass's own, with memory of its own.
  InstanceId add(const Instance& instance) { return graph_.add(instance); }
  /// One that is written over an instance of the new graph.
  InstanceId add_over(InstanceId made) { return graph_.add_over(made); }
  /// The memory of an instance of the new graph stays until what has been appended is done.
  void release(InstanceId made) { graph_.release(made); }
  const Instance& operator[](InstanceId made) const { return graph_[made]; }
  /// In the new graph: the copy of an old instance, or what stands for it. no_instance: not yet
  /// written.
  InstanceId now(InstanceId old) const { return now_[index(old)]; }
  /// From now on `instance` stands for the old one: it is what is read, written over and held.
  void replace(InstanceId old, InstanceId instance) { now_[index(old)] = instance; }
  /// A new version over the memory of what stands for `old`, and from now on stands for it.
  InstanceId write_over(InstanceId old);
  /// For a node of the pass's own that writes what an old one did: the copy of an old instance.
  InstanceId written(InstanceId old);
  /// An operation that reads what an old node reads.
  Operation reads_of(const Node& node) const;

  /// All nodes must have been copied or skipped.
  JointGraph finish() &&;

 private:
  const Node& next() const { return old_.nodes[index(next_)]; }

  const JointGraph& old_;
  GraphBuilder graph_;
  Operation operation_;  ///< of the node that is copied; kept for its memory
  NodeId next_{0};
  bool is_ended_ = true;         ///< the node before it
  std::vector<InstanceId> now_;  ///< by old instance
  std::vector<NodeId> done_;     ///< by old node: the last of its lane that belongs to it
  std::vector<Hold> holds_;      ///< of the old graph, by `until`
  std::size_t next_hold_ = 0, next_edge_ = 0;
};

}  // namespace tidemark
