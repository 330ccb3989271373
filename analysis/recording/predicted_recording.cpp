// Collects an evaluation's schedule, timeline, arena offsets and decisions in one recording.
#include "analysis/recording/predicted_recording.h"

#include <fmt/format.h>

#include "analysis/pipeline_timeline.h"
#include "base/error.h"
#include "base/parallel.h"
#include "simulator/arena.h"
#include "simulator/needs.h"

namespace tidemark {

Recording recording_of(const Evaluation& evaluation, const Device& device) {
  CHECK(evaluation.report.applies);
  return {.source = Source::Predicted,
          .strategy = evaluation.report.strategy,
          .device = device.name,
          .capacity = evaluation.report.capacity,
          .planned = evaluation.report.planned,
          .trace = evaluation.planned.trace,
          .schedule = evaluation.schedule,
          .timeline = evaluation.timeline,
          .offsets = plan_arena(evaluation.schedule).offsets,
          .decisions = decision_texts(evaluation.planned),
          .derived = evaluation.planned.derived};
}

std::vector<Recording> recordings_of(const Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  const auto traces = traces_of(scenario);
  std::vector<StrategySpec> strategies;
  for (std::size_t row = 0; row < comparison.rows.size(); ++row)
    if (comparison.rows[row].applies) strategies.push_back(scenario.strategies[row]);
  std::vector<Recording> recordings(strategies.size());
  parallel_for(strategies.size(), [&](std::size_t i) {
    recordings[i] = recording_of(evaluate_on_pipeline_clock(traces, strategies[i], scenario.device,
                                                            comparison.budget, scenario.step.rank),
                                 scenario.device);
  });
  return recordings;
}

std::vector<std::string> decision_texts(const PlannedStep& planned) {
  const auto& [trace, plan, refusal, known, rewrites] = planned;
  const std::shared_ptr<const Derived> derived = derived_of(planned);
  const Needs& needs = derived->needs;
  std::vector<std::string> texts(trace->tensors.size());
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const bool owns = trace->tensors[t].storage == static_cast<TensorId>(t);
    const bool is_saved = needs.uses[t] > 0 || plan.decisions[t].action != Action::Keep;
    if (!owns || !is_saved) continue;
    const std::string& reason =
        plan.reasons[plan.decisions[t].reason];  // of what is kept it says so
    texts[t] = plan.decisions[t].action == Action::Keep
                   ? reason
                   : fmt::format("{}: {}", to_string(plan.decisions[t].action), reason);
  }
  return texts;
}

}  // namespace tidemark
