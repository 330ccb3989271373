// When each micro-batch's gradients of parameters are complete, for passes that take them away one
// by one.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// What one micro-batch contributes to the gradient of a trained parameter.
struct CompleteGradient {
  TensorId parameter;
  NodeId after;  ///< complete once it is done
  bool is_last;  ///< micro-batch
};

struct CompleteGradients {
  std::vector<CompleteGradient> all;  ///< in order
  NodeId end{};  ///< the first node of the optimizer's part behind the last of them
};

/// A parameter that is a storage of its own, and trained.
bool is_trained(const Trace& trace, TensorId id);

CompleteGradients complete_gradients(const Trace& trace, const JointGraph& graph);

}  // namespace tidemark
