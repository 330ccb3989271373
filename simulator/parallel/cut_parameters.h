// Where ranks keep parts of all parameters, for passes that gather them.
#pragma once

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// Parameters, and gradients that stay between steps, become shards as local_parameter() has them.
/// Whole values and gradients are instances that a pass has to make.
JointGraph cut_parameters(const Trace& trace, JointGraph graph);

}  // namespace tidemark
