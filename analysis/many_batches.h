// Steps of many micro-batches, of which all but the first and the last are alike.
#pragma once

#include "analysis/report_totals.h"

namespace tidemark {

/// What totals_of_ranks() asks of one rank. Where that is less work, two steps of few micro-batches
/// say what all of them take, to the nanosecond and the byte.
StepTotals evaluate_totals(const std::shared_ptr<const Trace>& trace, const StrategySpec& strategy,
                           const Device& device, const MemoryBudget& budget);

}  // namespace tidemark
