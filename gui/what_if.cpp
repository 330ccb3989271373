// Predicts the strategies of the panel.
#include "gui/what_if.h"

#include "analysis/recording/predicted_recording.h"

namespace tidemark::gui {

std::vector<StrategySpec> offered(const WhatIf& what_if) {
  std::vector<StrategySpec> specs = default_strategies();
  specs.insert(specs.end(), what_if.plans.begin(), what_if.plans.end());
  return specs;
}

Scenario scenario_of(const WhatIf& what_if) {
  Scenario scenario = what_if.scenario;
  scenario.allocator = what_if.allocator.empty()
                           ? allocator::AllocatorSettings{}
                           : allocator::parse_allocator_settings(what_if.allocator);
  return scenario;
}

std::vector<Prediction> predict(const WhatIf& what_if) {
  const auto trace = trace_of(what_if.scenario);
  const MemoryBudget budget = memory_budget_of(scenario_of(what_if));
  // A device smaller than its CUDA context, or a budget of nothing.
  if (budget.capacity < Bytes{1}) throw InputError("nothing fits in 0 bytes");
  std::vector<Prediction> predictions;
  for (const StrategySpec& strategy : what_if.strategies) {
    const Evaluation made = evaluate(trace, strategy, what_if.scenario.device, budget);
    predictions.push_back({nullptr, made.report});
    if (made.report.applies)
      predictions.back().opened =
          std::make_shared<const Opened>(recording_of(made, what_if.scenario.device));
  }
  return predictions;
}

}  // namespace tidemark::gui
