// Tries a fused update, one in the backward, an 8-bit optimizer and LoRA where the optimizer's step
// makes the peak, and losses in parts where the logits do, on all cores: together they take as long
// as four strategies.
#include "analysis/remedies.h"

#include "analysis/levers.h"
#include "analysis/report_totals.h"
#include "base/error.h"
#include "base/parallel.h"

namespace tidemark {
namespace {

// Nothing where it does not apply, or where a plan file does not fit the changed step.
std::optional<Report> report_of(const Scenario& scenario, const MemoryBudget& budget,
                                const StrategySpec& strategy) {
  try {
    const Report report =
        totals_of_ranks(traces_of(scenario), strategy, scenario.device, budget, scenario.step.rank);
    return report.applies ? std::optional(report) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool relieves(const Lever& lever, PeakMaker maker) {
  switch (maker) {
    case PeakMaker::Other:
      return false;
    case PeakMaker::OptimizerStep:
      return lever.relief == Relief::OptimizerStep;
    case PeakMaker::Loss:
      return lever.relief == Relief::Loss;
  }
  return false;
}

}  // namespace

std::vector<Remedy> find_remedies(const Scenario& scenario, const MemoryBudget& budget,
                                  const StrategySpec& strategy, const Report& row) {
  std::vector<Lever> levers = levers_of(scenario);
  std::erase_if(levers, [&](const Lever& lever) {
    return !lever.is_usual || !relieves(lever, row.peak_maker);
  });
  std::vector<std::optional<Report>> reports(levers.size());
  parallel_for(levers.size(),
               [&](std::size_t i) { reports[i] = report_of(levers[i].changed, budget, strategy); });
  std::vector<Remedy> found;
  for (std::size_t i = 0; i < levers.size(); ++i)
    if (reports[i] && reports[i]->allocated_peak < row.allocated_peak)
      found.push_back({levers[i].option, reports[i]->allocated_peak, reports[i]->fits});
  return found;
}

}  // namespace tidemark
