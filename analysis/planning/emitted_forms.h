// What frameworks and libraries let people ask for instead of a plan of tensors, each with what it
// costs.
#pragma once

#include "analysis/planning/planning.h"

namespace tidemark {

/// In the order of their freedom, of what has been planned.
std::vector<EmittedForm> emitted_forms(const Planning& planning);

}  // namespace tidemark
