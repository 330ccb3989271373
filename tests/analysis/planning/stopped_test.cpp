// Planning that is stopped midway: what is known by then is a plan as good as its proof says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::stopped_test {
namespace {

// After so many questions, for good.
PlanWatch stopped_after(std::size_t questions) {
  return {.is_stopped = [left = questions]() mutable { return left == 0 || left-- == 0; }};
}

TEST(StoppedPlanning, KeepsToTheBudgetWhenever) {
  const Scenario scenario = planned_scenario("bert-base", Precision::AmpBf16);
  const Bytes budget{report_of(scenario, "vanilla").allocated_peak.count * 3 / 4};
  const Nanoseconds best = plan_within(scenario, {.budget = budget}).comparison.rows.back().step;
  for (const std::size_t questions : {0, 1, 3, 10, 30, 60}) {
    const Planning planning =
        plan_within(scenario, {.budget = budget, .allowed = {Allowed::Offload}, .front_points = 4},
                    stopped_after(questions));
    const Report& row = planning.comparison.rows.back();
    ASSERT_TRUE(planning.is_stopped) << questions;
    ASSERT_TRUE(planning.feasible) << questions;
    EXPECT_LE(row.allocated_peak, budget) << questions;
    EXPECT_LE(planning.lower_bound, row.step) << questions;
    EXPECT_LE(planning.lower_bound, best) << questions;
  }
}

TEST(StoppedPlanning, LeavesOutWhatStandsBesideThePlan) {
  const Scenario scenario = planned_scenario("llama-7b", Precision::Bf16, 1);
  const PlanRequest request{.budget = gib(24), .front_points = 4, .lists_forms = true};
  const Planning planning = plan_within(scenario, request, stopped_after(0));
  EXPECT_FALSE(planning.feasible);  // the optimizer's step alone needs more
  EXPECT_THAT(planning.advice, testing::IsEmpty());
  EXPECT_THAT(planning.fronts.back().points, testing::IsEmpty());
}

TEST(StoppedPlanning, IsNotSaidWhereNobodyStops) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  EXPECT_FALSE(plan_within(scenario, {}, stopped_after(1'000'000)).is_stopped);
  std::vector<std::string> told;
  const PlanWatch watch{.tell = [&](std::string_view what) { told.emplace_back(what); }};
  plan_within(scenario, {.front_points = 2}, watch);
  EXPECT_THAT(told, testing::Contains("exact: 2 of 2 points of the front"));
}

}  // namespace
}  // namespace tidemark::stopped_test
