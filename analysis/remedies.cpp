// Tries a fused update, one in the backward, an 8-bit optimizer and LoRA where the optimizer's step
// makes the peak.
#include "analysis/remedies.h"

#include "analysis/levers.h"
#include "base/error.h"

namespace tidemark {
namespace {

// Nothing where it does not apply, or where a plan file does not fit the changed step.
std::optional<Report> report_of(const Scenario& scenario, const MemoryBudget& budget,
                                const StrategySpec& strategy) {
  try {
    const Report report = evaluate(trace_of(scenario), strategy, scenario.device, budget).report;
    return report.applies ? std::optional(report) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Remedy> find_remedies(const Scenario& scenario, const MemoryBudget& budget,
                                  const StrategySpec& strategy, const Report& row) {
  std::vector<Remedy> found;
  if (row.peak_maker != PeakMaker::OptimizerStep) return found;
  for (const Lever& lever : levers_of(scenario)) {
    if (!lever.is_usual) continue;
    const std::optional<Report> report = report_of(lever.changed, budget, strategy);
    if (report && report->allocated_peak < row.allocated_peak)
      found.push_back({lever.option, report->allocated_peak, report->fits});
  }
  return found;
}

}  // namespace tidemark
