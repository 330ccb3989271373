// Variables of published code that name what nobody reads any more: until the gradients of an op.
#pragma once

#include "simulator/graph/graph_builder.h"
#include "traces/trace.h"

namespace tidemark {

/// Releases instances in the backward, some of them later than they could be.
class NamedInstances {
 public:
  NamedInstances(std::size_t ops, GraphBuilder& graph) : ops_(ops), graph_(graph) {}

  /// Releases now, or when the gradients of `until` are done if these are still to come after
  /// those of `at`. no_op: now.
  void release(InstanceId instance, OpId until, OpId at) {
    if (until == no_op || at == no_op || index(at) <= index(until)) return graph_.release(instance);
    if (until_.empty()) until_.resize(ops_);
    until_[index(until)].push_back(instance);
  }

  /// The gradients of this op are done.
  void end(OpId op) {
    if (until_.empty()) return;
    for (const InstanceId instance : until_[index(op)]) graph_.release(instance);
    until_[index(op)].clear();
  }

 private:
  std::size_t ops_;
  GraphBuilder& graph_;
  std::vector<std::vector<InstanceId>> until_;  ///< by op; only where something is named
};

}  // namespace tidemark
