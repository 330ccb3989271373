// What frameworks and libraries let people ask for instead of a plan of tensors, each with what it
// costs.
#pragma once

#include "analysis/planning/planning.h"

namespace tidemark {

/// In the order of their freedom, of what has been planned. Single tensors are planned in the
/// request's class; the others recompute, and where plans may offload, blocks' inputs may wait in
/// the host's memory.
std::vector<EmittedForm> emitted_forms(const Planning& planning, const PlanWatch& watch = {});

}  // namespace tidemark
