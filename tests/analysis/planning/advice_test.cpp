// What other options of the step would make of a budget.
#include "analysis/planning/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::advice_test {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;
using testing::Not;

const Advice* find(const std::vector<Advice>& all, std::string_view option) {
  const auto found = std::ranges::find(all, option, &Advice::option);
  return found == all.end() ? nullptr : &*found;
}

// What LLaMA-7B's optimizer holds is no question of blocks: other optimizers lower it.
TEST(Advice, NamesWhatLowersAPeakThatNoPlanLowers) {
  const Planning planning =
      plan_within(planned_scenario("llama-7b", Precision::Bf16, 1), {.budget = gib(24)});
  ASSERT_FALSE(planning.feasible);
  const Report& smallest = planning.comparison.rows.back();
  ASSERT_THAT(planning.advice, Contains(Field(&Advice::option, "--tuning lora:r=8,targets=all")));
  bool was_feasible = true;
  for (const Advice& each : planning.advice) {
    EXPECT_TRUE(was_feasible || !each.is_feasible) << each.option;  // those that suffice come first
    was_feasible = each.is_feasible;
    // Those that do not suffice lower it by more than a thousandth.
    const Bytes most =
        each.is_feasible ? planning.budget : Bytes{smallest.allocated_peak.count * 999 / 1000};
    EXPECT_LE(each.measured, most) << each.option;
  }
}

TEST(Advice, IsAboutTheLossWhereTheLossBinds) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 16);
  const Planning planning = plan_within(scenario, {.budget = gib(12)});
  ASSERT_TRUE(planning.feasible && planning.loss_binds);
  ASSERT_THAT(planning.advice, Not(IsEmpty()));
  for (const Advice& each : planning.advice) {
    EXPECT_THAT(each.option, testing::StartsWith("--loss "));
    EXPECT_LT(each.step.count(), planning.comparison.rows.back().step.count() * 999 / 1000);
    EXPECT_LE(each.measured, planning.budget);
  }
}

// A lever's plan may do what the request's may: what is advised is not slower for want of it.
TEST(Advice, IsPlannedInTheRequestsClass) {
  const Scenario scenario = offload_scenario();
  const Planning exact = plan_within(scenario, {.budget = gib(12)});
  const Planning both =
      plan_within(scenario, {.budget = gib(12), .allowed = {Allowed::Exact, Allowed::Offload}});
  const Advice* alone = find(exact.advice, "--loss fused-linear");
  const Advice* offloaded = find(both.advice, "--loss fused-linear");
  ASSERT_TRUE(alone && offloaded);
  EXPECT_LT(offloaded->step, alone->step);
}

TEST(Advice, IsNotGivenWhereNobodyNeedsIt) {
  EXPECT_THAT(plan_within(planned_scenario("gpt2", Precision::Fp32), {}).advice, IsEmpty());
  EXPECT_THAT(plan_within(planned_scenario("gpt2", Precision::Fp32), {.max_slowdown = 0.05}).advice,
              IsEmpty());
}

}  // namespace
}  // namespace tidemark::advice_test
