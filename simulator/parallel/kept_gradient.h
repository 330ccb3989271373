// The gradient of one micro-batch stays as it is, for a pass that adds up elsewhere.
#pragma once

#include <vector>

#include "simulator/graph/graph_rewriter.h"
#include "traces/trace.h"

namespace tidemark {

/// In place of the node that adds a gradient to a sum: the gradient itself, or where it is shared
/// with others a copy of its own, takes the sum's name.
void keep_gradient(const Trace& trace, const JointGraph& graph, const Node& node,
                   GraphRewriter& rewriter);

/// The last of a gradient's versions, of the old graph in order, that has been written; one has.
InstanceId last_written(const std::vector<InstanceId>& versions, const GraphRewriter& rewriter);

/// Who reads a version from now on reads what was made of it.
void stand_for(const std::vector<InstanceId>& versions, InstanceId made, GraphRewriter& rewriter);

}  // namespace tidemark
