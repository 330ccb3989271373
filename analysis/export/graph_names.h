// What nodes and instances of a joint graph are called where people look at them.
#pragma once

#include <string>
#include <string_view>

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark::exports {

/// "recompute", "copy out".
std::string_view task_name(const JointGraph& graph, const Node& node);

/// "recompute blocks.3.mlp.fc1"; the optimizer's have no op.
std::string node_name(const Trace& trace, const JointGraph& graph, const Node& node);

/// "d mlp.fc1 v1": the second version of a gradient, without the prefix that names need not repeat.
std::string instance_name(const Trace& trace, const Instance& instance, std::string_view prefix);

}  // namespace tidemark::exports
