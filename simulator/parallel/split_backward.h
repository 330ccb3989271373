// Backward passes in two halves: the gradients that other stages wait for, then those of weights.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// Do this step's stages make gradients of weights in a pass of their own?
bool splits_backward(const StepOptions& step);

/// By op of such a step, else empty: the inputs whose gradients belong to the second half. They are
/// made of parameters alone, and no kernel that writes one of them writes another gradient; where
/// the table of ops says that one does, all of the op's gradients belong to the first half.
std::vector<std::uint32_t> gradients_of_weights(const Trace& trace);

/// A graph of micro-batches one after the other, whose backward passes have come apart.
struct SplitGraph {
  JointGraph graph;
  std::vector<NodeId> weights;  ///< by micro-batch: where the second half begins
};

/// What a second half reads stays until then: a sum that would be written over such a gradient
/// gets memory of its own, as of autograd's, which adds in place only to what nobody else has.
SplitGraph split_backward(const Trace& trace, const JointGraph& graph);

}  // namespace tidemark
