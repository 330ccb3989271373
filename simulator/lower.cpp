// Differentiation, then placement: the two halves of lowering put together.
#include "simulator/lower.h"

#include "simulator/graph/differentiate.h"
#include "simulator/place/place.h"

namespace tidemark {

Schedule lower(const Trace& trace, const Plan& plan) {
  return place(differentiate(trace, plan), placement_of(trace, plan));
}

Schedule lower(const PlannedStep& step) {
  const JointGraph graph = differentiate(*step.trace, step.plan, *derived_of(step));
  return place(graph, placement_of(*step.trace, step.plan));
}

}  // namespace tidemark
