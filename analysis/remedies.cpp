// Tries a fused update, one in the backward, an 8-bit optimizer and LoRA where the optimizer's step
// makes the peak, and losses in parts where the logits do, on all cores: together they take as long
// as four strategies.
#include "analysis/remedies.h"

#include "analysis/levers.h"
#include "analysis/report_totals.h"
#include "base/error.h"
#include "base/parallel.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

using Traces = std::vector<std::shared_ptr<const Trace>>;

void set_update(const StepOptions& from, StepOptions& step) {
  step.optimizer = from.optimizer;
  step.optimizer_form = from.optimizer_form;
  step.update_in_backward = from.update_in_backward;
}

// A model computes the same whatever updates it.
Traces changed_traces(const Scenario& scenario, std::span<const std::shared_ptr<const Trace>> known,
                      const Scenario& changed) {
  StepOptions but_for_update = changed.step;
  set_update(scenario.step, but_for_update);
  if (but_for_update != scenario.step) return traces_of(changed);
  Traces traces;
  for (const auto& trace : known) {
    Trace own = *trace;
    set_update(changed.step, own.step);
    require_used_options(own);
    traces.push_back(std::make_shared<const Trace>(std::move(own)));
  }
  return traces;
}

// Nothing where it does not apply, or where a plan file does not fit the changed step.
std::optional<Report> report_of(const Scenario& scenario,
                                std::span<const std::shared_ptr<const Trace>> known,
                                const Scenario& changed, const MemoryBudget& budget,
                                const StrategySpec& strategy) {
  try {
    const Report report = totals_of_ranks(changed_traces(scenario, known, changed), strategy,
                                          changed.device, budget, changed.step.rank);
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

std::vector<Remedy> find_remedies(const Scenario& scenario,
                                  std::span<const std::shared_ptr<const Trace>> traces,
                                  const MemoryBudget& budget, const StrategySpec& strategy,
                                  const Report& row) {
  std::vector<Lever> levers = levers_of(scenario);
  std::erase_if(levers, [&](const Lever& lever) {
    return !lever.is_usual || !relieves(lever, row.peak_maker);
  });
  std::vector<std::optional<Report>> reports(levers.size());
  parallel_for(levers.size(), [&](std::size_t i) {
    reports[i] = report_of(scenario, traces, levers[i].changed, budget, strategy);
  });
  std::vector<Remedy> found;
  for (std::size_t i = 0; i < levers.size(); ++i)
    if (reports[i] && reports[i]->allocated_peak < row.allocated_peak)
      found.push_back({levers[i].option, reports[i]->allocated_peak, reports[i]->fits});
  return found;
}

}  // namespace tidemark
