// In which order a pipeline stage takes its micro-batches.
#pragma once

#include "simulator/graph/joint_graph.h"
#include "simulator/plan.h"
#include "traces/trace.h"

namespace tidemark {

/// How many micro-batches differentiate() writes one after the other: all, or for a stage the first
/// two, of which all others are made.
std::int64_t written_micro_batches(const StepOptions& step);

/// Of a graph of one or two micro-batches, one after the other: all of the step in the stage's
/// order, each with its own values, and backward passes in two halves where the schedule has them
/// so. The graph itself without stages.
JointGraph order_micro_batches(const Trace& trace, JointGraph graph);

/// Why micro-batches in flight do not go with such a plan, or "".
std::string pipeline_defect(const StepOptions& step, const Plan& plan);

}  // namespace tidemark
