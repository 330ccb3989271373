// differentiate(trace, plan): the only place that knows how to make an absent tensor present.
#pragma once

#include "simulator/derived.h"
#include "simulator/graph/joint_graph.h"
#include "simulator/plan.h"

namespace tidemark {

/// The step as a graph: forward, gradients in reverse op order with each region recovered before
/// its gradients, optimizer. `check(trace)` and `check(trace, plan)` must be empty. Linear in the
/// number of ops.
JointGraph differentiate(const Trace& trace, const Plan& plan);
/// The same, given what follows from the two.
JointGraph differentiate(const Trace& trace, const Plan& plan, const Derived& derived);

}  // namespace tidemark
