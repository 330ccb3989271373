// lower(trace, plan): from what is decided to what would really happen, in one go.
#pragma once

#include "simulator/plan.h"
#include "simulator/schedule.h"

namespace tidemark {

/// place(differentiate(trace, plan)): the plan's schedule, placed as the plan says.
/// `check(trace)` and `check(trace, plan)` must be empty.
/// Promise: validate(trace, lower(trace, plan)) is empty. Linear in the number of ops.
Schedule lower(const Trace& trace, const Plan& plan);

}  // namespace tidemark
