// Predicts the strategies of the panel.
#include "gui/what_if.h"

#include <algorithm>
#include <numeric>

#include "analysis/pipeline_timeline.h"
#include "analysis/recording/predicted_recording.h"
#include "base/parallel.h"

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

// What each class does while the others do what they do.
Ranks ranks_of(RankEvaluations made, const WhatIf& what_if) {
  const auto& rank = what_if.scenario.step.rank;
  // A lever may make the pipeline shorter than it was when the class was chosen.
  const bool is_named = rank && static_cast<std::size_t>(rank->stage) < made.classes.size();
  const std::size_t shown = is_named ? static_cast<std::size_t>(rank->stage) : made.tightest;
  Ranks ranks{{}, {}, made.tightest, shown, std::move(made.pipeline)};
  for (const Evaluation& one : made.classes) ranks.reports.push_back(one.report);
  ranks.steps.resize(made.classes.size());
  parallel_for(made.classes.size(), [&](std::size_t s) {
    Evaluation& one = made.classes[s];
    one.timeline =
        on_pipeline_clock(*one.planned.trace, one.schedule, one.timeline, ranks.pipeline.passes[s],
                          ranks.pipeline.total, one.report.step);
    ranks.steps[s] = std::make_shared<const Opened>(recording_of(one, what_if.scenario.device));
  });
  return ranks;
}

// Of a pipeline the class of ranks that is asked for, or else the tightest.
Prediction prediction_of(RankEvaluations made, const WhatIf& what_if) {
  if (made.classes.size() == 1) {  // one rank, or a class that the strategy does not apply to
    const Evaluation& evaluation = made.classes.front();
    if (!evaluation.report.applies) return {nullptr, evaluation.report};
    return {std::make_shared<const Opened>(recording_of(evaluation, what_if.scenario.device)),
            evaluation.report};
  }
  auto ranks = std::make_shared<const Ranks>(ranks_of(std::move(made), what_if));
  return {ranks->steps[ranks->shown], ranks->reports[ranks->shown], ranks};
}

}  // namespace

std::vector<std::size_t> tightest_first(const Ranks& ranks) {
  std::vector<std::size_t> order(ranks.reports.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const Report &left = ranks.reports[a], &right = ranks.reports[b];
    if (left.fits != right.fits) return right.fits;
    return left.allocated_peak > right.allocated_peak;
  });
  return order;
}

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
