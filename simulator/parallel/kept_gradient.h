// The gradient of one micro-batch stays as it is, for a pass that adds up elsewhere.
#pragma once

#include "simulator/graph/graph_rewriter.h"
#include "traces/trace.h"

namespace tidemark {

/// In place of the node that adds a gradient to a sum: the gradient itself, or where it is shared
/// with others a copy of its own, takes the sum's name.
void keep_gradient(const Trace& trace, const JointGraph& graph, const Node& node,
                   GraphRewriter& rewriter);

}  // namespace tidemark
