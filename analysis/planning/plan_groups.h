// What the parts of a plan decide, block by block, and where its memory is tightest.
#pragma once

#include "analysis/planning/planning.h"
#include "simulator/planner/planner.h"

namespace tidemark {

/// Runs of stages with equal choices, in order; stages outside of blocks only where something is
/// decided about them. Of a pipeline stage, bytes are of all micro-batches that are kept at once.
std::vector<PlanGroup> groups_of(const Planner& planner, const std::vector<Planner::Part>& parts);

/// "backward of blocks.23", "optimizer step".
std::string binding_of(const Planner& planner, const std::vector<Planner::Part>& parts);

}  // namespace tidemark
