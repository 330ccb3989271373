// What runs again meets gradients on other streams. How much that saves depends on whom it meets:
//   gradients   [ streams memory ][   multiplies    ][ streams memory ]
//   at once     [ streams memory ]                                       nobody gains
//   waiting                       [ streams memory ]                     both at once, nearly
#pragma once

#include "simulator/cost/cost_model.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// The step's plan, which recovers regions beside gradients, with so many lanes, and with reruns
/// that wait for those gradients beside which they save most, as far as a beam search sees. Memory
/// in issue order is as before. Of a step of several micro-batches, the first one's backward is
/// looked at.
Plan meet_gradients(const PlannedStep& step, const CostModel& costs, std::uint8_t lanes);

}  // namespace tidemark
