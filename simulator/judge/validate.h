// The judge: says what is wrong with a graph or a schedule, and knows nothing about how it was
// made.
#pragma once

#include <string>
#include <vector>

#include "simulator/arena.h"
#include "simulator/graph/joint_graph.h"
#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

/// Everything that the schedule does wrong as one training step of the trace, a line each with the
/// step's index and names; empty if it is right. `check(trace)` must be empty. The rules are at the
/// top of validate.cpp.
std::vector<std::string> validate(const Trace& trace, const Schedule& schedule);

/// What is wrong with the places of the schedule's buffers: out of the arena, not aligned, or over
/// another buffer that may still be in use.
std::vector<std::string> validate(const Schedule& schedule, const Arena& arena);

/// What breaks the promises of a joint graph: versions that are read before they are written or
/// after they are overwritten, or written twice. The rules are at the top of validate_graph.cpp.
std::vector<std::string> validate(const JointGraph& graph);

}  // namespace tidemark
