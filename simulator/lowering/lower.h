// lower(trace, plan): the only place that knows how to make an absent tensor present.
#pragma once

#include "simulator/plan.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Turns a plan into steps: forward, gradients in reverse op order with each region recovered
/// before its gradients, optimizer. `check(trace)` and `check(trace, plan)` must be empty.
/// Promise: validate(trace, lower(trace, plan)) is empty. Linear in the number of ops.
Schedule lower(const Trace& trace, const Plan& plan);

}  // namespace tidemark
