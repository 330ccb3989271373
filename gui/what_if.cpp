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

namespace {

// Of a pipeline the class of ranks that is asked for, or else the tightest.
Prediction prediction_of(RankEvaluations made, const WhatIf& what_if) {
  const auto& rank = what_if.scenario.step.rank;
  const bool is_pipeline = made.classes.size() > 1;
  // A lever may make the pipeline shorter than it was when the class was chosen.
  const bool is_named = rank && static_cast<std::size_t>(rank->stage) < made.classes.size();
  const std::size_t shown = is_named ? static_cast<std::size_t>(rank->stage) : made.tightest;
  const Evaluation& evaluation = made.classes[shown];
  Prediction prediction{nullptr, evaluation.report};
  if (evaluation.report.applies)
    prediction.opened =
        std::make_shared<const Opened>(recording_of(evaluation, what_if.scenario.device));
  if (!is_pipeline) return prediction;
  Ranks ranks{{}, made.tightest, shown, std::move(made.pipeline)};
  for (const Evaluation& one : made.classes) ranks.reports.push_back(one.report);
  prediction.ranks = std::make_shared<const Ranks>(std::move(ranks));
  return prediction;
}

}  // namespace

std::vector<Prediction> predict(const WhatIf& what_if) {
  const auto traces = traces_of(what_if.scenario);
  const MemoryBudget budget = memory_budget_of(scenario_of(what_if));
  // A device smaller than its CUDA context, or a budget of nothing.
  if (budget.capacity < Bytes{1}) throw InputError("nothing fits in 0 bytes");
  std::vector<Prediction> predictions;
  for (const StrategySpec& strategy : what_if.strategies)
    predictions.push_back(prediction_of(
        evaluate_all_ranks(traces, strategy, what_if.scenario.device, budget), what_if));
  return predictions;
}

}  // namespace tidemark::gui
