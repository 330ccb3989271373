// Plans for the stages of a pipeline, judged by the whole simulation of all stages.
#include "analysis/planning/pipeline_planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explanation.h"
#include "analysis/rank_report.h"
#include "base/error.h"
#include "simulator/plan_json.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::pipeline_planning_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Scenario pipeline(std::string_view model, Precision precision, std::string_view mesh,
                  std::int64_t micro_batches, std::string_view schedule = "1f1b",
                  std::int64_t batch = 4) {
  Scenario scenario = planned_scenario(model, precision, batch);
  scenario.step.mesh = parse_mesh(mesh);
  scenario.step.schedule = parse_schedule(schedule);
  scenario.step.accumulate.count = micro_batches;
  return scenario;
}

struct Case {
  const char* model;
  Precision precision;
  const char* mesh;
  std::int64_t micro_batches;
  const char* schedule = "1f1b";
  std::int64_t batch = 4;  ///< enough for the device not to wait for the host
};

constexpr std::array cases = {
    Case{"gpt2", Precision::AmpBf16, "pp=4", 8}, Case{"bert-base", Precision::Fp32, "pp=3", 3},
    Case{"gpt2", Precision::Bf16, "pp=2,tp=2", 6}, Case{"gpt2", Precision::Fp32, "pp=2,dp=4", 4},
    Case{"vit-b-16", Precision::AmpFp16, "pp=2", 5, "gpipe", 32}};

RankEvaluations evaluated(const Scenario& scenario, const StrategySpec& strategy) {
  const auto traces = traces_of(scenario);
  return evaluate_all_ranks(traces, strategy, scenario.device, memory_budget_of(scenario));
}

// Every stage keeps the budget in the simulation of its own micro-batches, the bound is below the
// time of all, and no named strategy that needs no more on any stage is faster.
TEST(PipelinePlanning, StagesKeepTheirBudgets) {
  for (const Case& c : cases) {
    const Scenario scenario =
        pipeline(c.model, c.precision, c.mesh, c.micro_batches, c.schedule, c.batch);
    for (const char* name : {"vanilla", "checkpoint", "checkpoint:selective"}) {
      const RankEvaluations named = evaluated(scenario, parse_strategy(name));
      if (!named.classes.back().report.applies) continue;  // flash attention leaves nothing to it
      const Report& tightest = named.classes[named.tightest].report;
      const Planning planning = plan_within(scenario, {.budget = tightest.allocated_peak});
      ASSERT_TRUE(planning.feasible) << c.model << " " << c.mesh << " " << name;
      const Report& row = planning.comparison.rows.back();
      ASSERT_EQ(std::ssize(planning.stages), scenario.step.mesh[Axis::Pipeline]);
      for (const StagePlan& stage : planning.stages) {
        EXPECT_LE(stage.report.allocated_peak, planning.budget) << c.model << " " << name;
        EXPECT_EQ(stage.report.step, row.step);
      }
      EXPECT_LE(row.step, tightest.step) << c.model << " " << c.mesh << " " << name;
      EXPECT_LE(planning.lower_bound, row.step) << c.model << " " << c.mesh << " " << name;
      EXPECT_LT(planning.gap, 0.05) << c.model << " " << c.mesh << " " << name;
    }
  }
}

// One file for all stages: whoever reads it finds what the plan says.
TEST(PipelinePlanning, FilesAreTakenByCompareAndExplain) {
  Scenario scenario = pipeline("gpt2", Precision::AmpBf16, "pp=3", 6);
  const Planning planning = plan_within(scenario, {.budget = gib(4)});
  ASSERT_TRUE(planning.feasible);
  EXPECT_THAT(plan_text(planning), Not(HasSubstr("pp0")));  // it is of all of them
  const StrategySpec file = read_plan(plan_text(planning), "x.plan.json");
  scenario.strategies = {parse_strategy("vanilla"), file};
  const Report& row = planning.comparison.rows.back();
  EXPECT_EQ(compare(scenario).rows.back().step, row.step);
  EXPECT_EQ(compare(scenario).rows.back().allocated_peak, row.allocated_peak);
  scenario.strategies = {file};
  for (const StagePlan& stage : planning.stages) {
    scenario.step.rank = stage.report.rank;
    EXPECT_EQ(explain(scenario).report().allocated_peak, stage.report.allocated_peak);
  }
}

TEST(PipelinePlanning, FilesOfOtherPipelinesAreRefused) {
  Scenario scenario = pipeline("gpt2", Precision::AmpBf16, "pp=3", 6);
  const StrategySpec file =
      read_plan(plan_text(plan_within(scenario, {.budget = gib(4)})), "x.plan.json");
  const auto refusal = [&](const char* mesh) -> std::string {
    scenario.step.mesh = parse_mesh(mesh);
    scenario.strategies = {file};
    try {
      compare(scenario);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("pp=2"), HasSubstr("/stages: is of 3 pipeline stages, and the mesh has 2"));
  EXPECT_THAT(refusal("pp=1"), HasSubstr("is of 3 pipeline stages, and the mesh has 1"));
}

// Without a plan for one stage there is none for all, and what is shown says which.
TEST(PipelinePlanning, SaysWhichStageDoesNotFit) {
  const Scenario scenario = pipeline("gpt2", Precision::AmpBf16, "pp=2", 4);
  const Planning planning = plan_within(scenario, {.budget = Bytes{std::int64_t{2} << 30}});
  EXPECT_FALSE(planning.feasible);
  for (const StagePlan& stage : planning.stages)
    EXPECT_EQ(stage.is_feasible, stage.report.allocated_peak <= planning.budget);
}

TEST(PipelinePlanning, RefusesWhatStagesDoNot) {
  const Scenario plain = pipeline("gpt2", Precision::Fp32, "pp=2", 4);
  const auto refusal = [](const Scenario& scenario, const PlanRequest& request) -> std::string {
    try {
      plan_within(scenario, request);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(pipeline("gpt2", Precision::Fp32, "pp=2", 4, "interleaved:v=2"), {}),
              HasSubstr("--schedule interleaved:v=2"));
  EXPECT_THAT(refusal(pipeline("gpt2", Precision::Fp32, "pp=2", 4, "zb-h1"), {}),
              HasSubstr("--schedule zb-h1"));
  EXPECT_THAT(refusal(plain, {.allowed = {Allowed::Exact, Allowed::Offload}}),
              HasSubstr("--allow exact,offload"));
  EXPECT_THAT(refusal(plain, {.max_slowdown = 0.1}), HasSubstr("--max-slowdown"));
  EXPECT_THAT(refusal(plain, {.front_points = 4}), HasSubstr("--front"));
  EXPECT_THAT(refusal(plain, {.lists_forms = true}), HasSubstr("--forms"));
}

}  // namespace
}  // namespace tidemark::pipeline_planning_test
