// lower(trace, plan): from what is decided to what would really happen, in one go.
#pragma once

#include "simulator/schedule.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// place(differentiate(trace, plan)): the plan's schedule, placed as the plan says.
/// `check(trace)` and `check(trace, plan)` must be empty.
/// Promise: validate(trace, lower(trace, plan)) is empty. Linear in the number of ops.
Schedule lower(const Trace& trace, const Plan& plan);
Schedule lower(const PlannedStep& step);

}  // namespace tidemark
