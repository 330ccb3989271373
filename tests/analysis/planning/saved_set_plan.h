// A plan from nothing but the set of tensors that somebody saves.
#pragma once

#include <set>
#include <string>

#include "simulator/plan.h"

namespace tidemark {

/// What gradients need and the set has not is made again, in the smallest regions that hold what
/// runs again and all that reads it.
Plan plan_of_saved(const Trace& trace, const std::set<std::string>& saved);

}  // namespace tidemark
