// Plans whose recovery runs beside gradients, and how far from the best they can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::two_streams_test {
namespace {

Planning planned(const Scenario& scenario, Bytes budget) {
  PlanRequest request{.budget = budget};
  request.allowed = {Allowed::Exact, Allowed::Overlap};
  return plan_within(scenario, request, {});
}

// 11.0 % and 5.7 % with two lanes, and reruns that wait for nothing.
TEST(TwoStreams, AreWithinFivePerCentOfTheBound) {
  const Planning gpt2 = planned(planned_scenario("gpt2", Precision::AmpBf16, 16), gib(12));
  EXPECT_LT(gpt2.gap, 0.04);
  EXPECT_LE(gpt2.comparison.rows.back().allocated_peak, gib(12));
  Scenario lora = planned_scenario("llama-7b", Precision::Bf16, 4);
  lora.step.tuning = parse_tuning("lora:targets=q,v");
  EXPECT_LT(planned(lora, gib(26)).gap, 0.035);
}

// Blocks that are recovered as one have nothing to run beside: here each by itself is faster on two
// streams, and slower on one.
TEST(TwoStreams, RecoverEachBlockByItselfWhereThatIsFaster) {
  const Scenario scenario = planned_scenario("gpt2", Precision::AmpBf16, 16);
  PlanRequest alone{.budget = gib(12)};
  EXPECT_TRUE(plan_within(scenario, alone, {}).joins_blocks);
  EXPECT_FALSE(planned(scenario, gib(12)).joins_blocks);
}

// Each lane has memory of its own, which only what is reserved knows of.
TEST(TwoStreams, TakeFewerLanesWhereWhatIsReservedCounts) {
  const Scenario scenario = planned_scenario("gpt2", Precision::AmpBf16, 16);
  EXPECT_EQ(planned(scenario, gib(12)).planned.plan.lanes, most_lanes);
  PlanRequest request{.budget = gib(18), .measure = Measure::Reserved};
  const Planning alone = plan_within(scenario, request, {});
  request.allowed = {Allowed::Exact, Allowed::Overlap};
  const Planning planning = plan_within(scenario, request, {});
  EXPECT_EQ(planning.planned.plan.lanes, least_lanes);
  EXPECT_LE(planning.comparison.rows.back().reserved_peak, gib(18));
  EXPECT_LT(planning.comparison.rows.back().step, alone.comparison.rows.back().step);
}

}  // namespace
}  // namespace tidemark::two_streams_test
