// Plans for networks whose blocks are coupled already, so that inputs follow from outputs.
#pragma once

#include <vector>

#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

/// Every plan that strategies have for such a trace, on one stream; none for any other.
std::vector<Plan> plans_of_couplings(const Trace& trace, const Needs& needs);

}  // namespace tidemark
