// The totals of a report alone, for who asks about thousands of steps.
#pragma once

#include <span>

#include "analysis/report.h"

namespace tidemark {

/// evaluate_ranks() without arena, peak, saved tensors and recovery: of the report there are
/// strategy, applies and reason, rank, what the allocator says and what fits, step, throughput,
/// MFU, communication and bubble, each as evaluate_ranks() has it.
Report totals_of_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                       const StrategySpec& strategy, const Device& device,
                       const MemoryBudget& budget, std::optional<RankClass> rank = {});

/// … of one rank, with what its pipeline's clock asks for.
Evaluation evaluate_totals(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                           const Device& device, const MemoryBudget& budget);

}  // namespace tidemark
