// Options that were tried for a peak need what they would need if they were typed.
#include "analysis/remedies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/levers.h"
#include "analysis/report_totals.h"
#include "simulator/strategies/strategy.h"
#include "tests/support/small_models.h"
#include "traces/mesh.h"

namespace tidemark::remedies_test {
namespace {

// Parameters weigh most: the optimizer makes the peak.
Scenario small_batch() {
  Scenario scenario;
  scenario.model = small_llama(4);
  scenario.step.batch = 1;
  scenario.step.sequence = 8;
  scenario.device = find_device("a100-80gb");
  return scenario;
}

Bytes allocated_if_typed(const Scenario& scenario, const std::string& option) {
  const std::vector<Lever> levers = levers_of(scenario);
  const auto lever = std::ranges::find(levers, option, &Lever::option);
  return totals_of_ranks(traces_of(lever->changed), parse_strategy("vanilla"),
                         lever->changed.device, memory_budget_of(scenario))
      .allocated_peak;
}

std::vector<Remedy> remedies_of(const Scenario& scenario) {
  const auto traces = traces_of(scenario);
  const MemoryBudget budget = memory_budget_of(scenario);
  const StrategySpec vanilla = parse_strategy("vanilla");
  Report row = totals_of_ranks(traces, vanilla, scenario.device, budget);
  row.peak_maker = PeakMaker::OptimizerStep;
  return find_remedies(scenario, traces, budget, vanilla, row);
}

// Three of them change the update alone, and are tried on the traces that are there.
TEST(Remedies, NeedWhatTheOptionsNeed) {
  for (const std::int64_t ranks : {1, 2}) {
    Scenario scenario = small_batch();
    if (ranks > 1) scenario.step.mesh = parse_mesh("pp=2");
    std::vector<std::string> options;
    for (const Remedy& remedy : remedies_of(scenario)) {
      options.push_back(remedy.option);
      EXPECT_EQ(remedy.allocated, allocated_if_typed(scenario, remedy.option)) << remedy.option;
    }
    EXPECT_EQ(options, (std::vector<std::string>{"--optimizer-form fused", "--update-in-backward",
                                                 "--optimizer adamw-8bit",
                                                 "--tuning lora:r=8,targets=all"}));
  }
}

// What cannot be asked for is not tried: in the backward only whole steps can be updated.
TEST(Remedies, AreOnlyWhatCanBeAskedFor) {
  Scenario scenario = small_batch();
  scenario.step.accumulate.count = 2;
  for (const Remedy& remedy : remedies_of(scenario))
    EXPECT_NE(remedy.option, "--update-in-backward");
}

}  // namespace
}  // namespace tidemark::remedies_test
