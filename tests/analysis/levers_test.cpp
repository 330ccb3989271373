// Options of the step that can lower a peak: which apply, and what each sets.
#include "analysis/levers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::levers_test {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> options_of(const Scenario& scenario) {
  std::vector<std::string> options;
  for (const Lever& lever : levers_of(scenario)) options.push_back(lever.option);
  return options;
}

const Lever& lever(const std::vector<Lever>& all, std::string_view option) {
  const auto found = std::ranges::find(all, option, &Lever::option);
  EXPECT_NE(found, all.end()) << option;
  return *found;
}

TEST(Levers, AreNotOfferedWhereTheyAreSet) {
  Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  EXPECT_THAT(options_of(scenario), Contains("--optimizer-form fused"));
  EXPECT_THAT(options_of(scenario), Contains("--loss fused-linear"));
  for (const Lever& each : levers_of(scenario)) {
    if (each.relief == Relief::Loss || each.relief == Relief::Activations) continue;
    EXPECT_THAT(options_of(each.changed), Not(Contains(each.option)));
  }
  scenario.step.loss = parse_token_loss("chunked:8");
  EXPECT_THAT(options_of(scenario), Not(Contains("--loss fused-linear")));
}

TEST(Levers, AreNotOfferedWhereTheyMeanNothing) {
  EXPECT_THAT(options_of(planned_scenario("vit-b-16", Precision::Fp32)),
              Not(Contains("--loss fused-linear")));  // its loss has no tokens
  Scenario sgd = planned_scenario("gpt2", Precision::Fp32, 7);
  sgd.step.optimizer = Optimizer::Sgd;
  EXPECT_THAT(options_of(sgd), Not(Contains("--optimizer adamw-8bit")));
  EXPECT_THAT(options_of(sgd), Not(Contains("--batch 3 --accumulate 2")));  // 7 has no half
  Scenario file = planned_scenario("gpt2", Precision::Fp32);
  file.trace = trace_of(file);
  EXPECT_THAT(levers_of(file), IsEmpty());
}

TEST(Levers, HalvesTheMicroBatch) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 8);
  const std::vector<Lever> levers = levers_of(scenario);
  const Lever& half = lever(levers, "--batch 4 --accumulate 2");
  EXPECT_EQ(half.relief, Relief::Activations);
  EXPECT_EQ(half.changed.step.batch * half.changed.step.accumulate.count, 8);
}

// Each is the option that it names: it changes the step, and the step can be built.
TEST(Levers, ChangeTheStep) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 2);
  const Report before = report_of(scenario, "vanilla");
  for (const Lever& each : levers_of(scenario)) {
    if (each.relief == Relief::Loss || each.relief == Relief::Fragmentation) continue;
    const Report after = report_of(each.changed, "vanilla");
    EXPECT_TRUE(after.allocated_peak != before.allocated_peak || after.step != before.step)
        << each.option;
  }
}

}  // namespace
}  // namespace tidemark::levers_test
