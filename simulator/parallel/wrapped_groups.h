// The groups of parameters that fully_shard gathers and reduces together, and when each is needed.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// A block's parameters that nothing outside reads, or (the first group, the root) all others.
struct WrappedGroup {
  std::vector<TensorId> parameters;  ///< storages
  OpId first_op{};                   ///< names what is done for the group
};

/// The root, then a group per block in order; a block without parameters of its own has none.
std::vector<WrappedGroup> wrapped_groups(const Trace& trace);

/// A forward or backward pass of one micro-batch.
struct Pass {
  bool is_backward = false;
  NodeId begin{}, end{};  ///< nodes [begin, end)
  /// By group: its first node and the one behind its last, or no_node if the pass has none.
  std::vector<NodeId> enter = {}, leave = {};
};

/// All passes before the optimizer's part, in order. The root's are the whole pass.
std::vector<Pass> passes_of(const Trace& trace, const JointGraph& graph,
                            const std::vector<WrappedGroup>& groups);

}  // namespace tidemark
