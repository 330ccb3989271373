// What lowers a peak that no strategy lowers: other options of the step, tried.
#pragma once

#include <span>

#include "analysis/comparison.h"

namespace tidemark {

/// Those of Tidemark's options that lower the peak of the strategy, whose report is `row`, with
/// what it then needs. None where the step is a file's. The traces are the scenario's.
std::vector<Remedy> find_remedies(const Scenario& scenario,
                                  std::span<const std::shared_ptr<const Trace>> traces,
                                  const MemoryBudget& budget, const StrategySpec& strategy,
                                  const Report& row);

}  // namespace tidemark
