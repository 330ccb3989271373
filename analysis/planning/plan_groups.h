// What a point of the front decides, block by block, and where its memory is tightest.
#pragma once

#include "analysis/planning/planning.h"
#include "simulator/planner/planner.h"

namespace tidemark {

/// Runs of stages with equal choices, in order; stages outside of blocks only where something is
/// decided about them. Of a pipeline stage, bytes are of all micro-batches that are kept at once.
std::vector<PlanGroup> groups_of(const Planner& planner, std::size_t point);

/// "backward of blocks.23", "optimizer step".
std::string binding_of(const Planner& planner, std::size_t point);

}  // namespace tidemark
