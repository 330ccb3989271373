// Plans for all stages of a pipeline: of each the fastest in the memory of one device.
#pragma once

#include "analysis/planning/planning.h"

namespace tidemark {

/// UsageError for what is not planned for stages.
void refuse_for_stages(const StepOptions& step, const PlanRequest& request);

/// The plans of all stages, and how long they take together. A stage's micro-batches in flight are
/// kept at once, as its schedule has them. `planning` has the request, its budget and vanilla.
void plan_stages(const PlanWatch& watch, Planning& planning);

}  // namespace tidemark
