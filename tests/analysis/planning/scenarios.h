// Steps that plans are made for in these tests.
#pragma once

#include <algorithm>

#include "analysis/planning/plan_searches.h"
#include "analysis/planning/planning.h"
#include "traces/presets.h"

namespace tidemark {

inline Scenario planned_scenario(std::string_view model, Precision precision,
                                 std::int64_t batch = 8) {
  Scenario scenario;
  scenario.model = find_model(std::string(model));
  scenario.step.batch = batch;
  scenario.step.precision = precision;
  scenario.device = find_device("a100-80gb");
  return scenario;
}

/// A link to the host that is fast beside a slow device: offload pays.
inline Scenario offload_scenario() {
  Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 16);
  scenario.device = find_device("rtx-4090");
  return scenario;
}

inline Report report_of(const Scenario& scenario, std::string_view strategy) {
  return evaluate(trace_of(scenario), parse_strategy(strategy), scenario.device,
                  memory_budget_of(scenario))
      .report;
}

inline bool joins_blocks(const FoundPlan& plan) {
  return std::ranges::any_of(plan.search->planner().parts_at(plan.point),
                             [](const Planner::Part& part) { return part.count > 1; });
}

constexpr Bytes gib(std::int64_t count) { return Bytes{count << 30}; }

}  // namespace tidemark
