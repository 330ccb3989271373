// Plans for the stages of a pipeline, judged by the whole simulation of all stages.
#include "analysis/planning/pipeline_planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explanation.h"
#include "analysis/rank_report.h"
#include "base/error.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/gather_buffer.h"
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

constexpr std::array cases = {Case{"gpt2", Precision::AmpBf16, "pp=4", 8},
                              Case{"bert-base", Precision::Fp32, "pp=3", 3},
                              Case{"gpt2", Precision::Bf16, "pp=2,tp=2", 6},
                              Case{"gpt2", Precision::Fp32, "pp=2,dp=4", 4},
                              Case{"vit-b-16", Precision::AmpFp16, "pp=2", 5, "gpipe", 32},
                              Case{"gpt2", Precision::AmpBf16, "pp=2", 4, "interleaved:v=3"}};

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

// The reference gathers sequences again, which a plan may keep.
TEST(PipelinePlanning, BoundsKnowThatGatheredSequencesMayStay) {
  for (const char* schedule : {"1f1b", "interleaved:v=3"})
    for (const char* framework : {"megatron", "transformers-4.57"}) {
      Scenario scenario = pipeline("gpt2", Precision::Bf16, "pp=2,tp=4", 4, schedule);
      scenario.step.sequence_parallel = true;
      scenario.step.framework = framework;
      const Report vanilla = evaluated(scenario, parse_strategy("vanilla")).classes[0].report;
      for (const std::int64_t percent : {98, 100, 200}) {
        const Planning planning =
            plan_within(scenario, {.budget = Bytes{vanilla.allocated_peak.count * percent / 100}});
        ASSERT_TRUE(planning.feasible) << framework << percent;
        const Report& row = planning.comparison.rows.back();
        EXPECT_LE(planning.lower_bound, row.step) << framework << percent << schedule;
        EXPECT_LT(planning.gap, 0.05) << framework << percent << schedule;
        if (percent == 200) {
          EXPECT_LT(planning.lower_bound, vanilla.step);
        }
      }
    }
}

// What a plan keeps of several micro-batches has no memory in common.
TEST(PipelinePlanning, GatheredSequencesThatStayAreThoseOfTheirMicroBatch) {
  for (const char* schedule_name : {"1f1b", "gpipe"})
    for (const char* framework : {"megatron", "megatron-local"}) {
      Scenario scenario = pipeline("gpt2", Precision::Bf16, "pp=2,tp=4", 4, schedule_name);
      scenario.step.sequence_parallel = true;
      scenario.step.framework = framework;
      const Planning planning = plan_within(scenario, {.budget = Bytes{std::int64_t{1} << 36}});
      ASSERT_TRUE(planning.feasible);
      for (const StagePlan& stage : planning.stages) {
        const TensorId gathered = gathered_in_place(*stage.planned.trace);
        if (gathered == no_tensor) continue;
        const Schedule schedule = lower(stage.planned);
        EXPECT_THAT(validate(*stage.planned.trace, schedule), testing::IsEmpty());
        std::int64_t own = 0;
        for (const Buffer& buffer : schedule.buffers)
          if (buffer.tensor == gathered && buffer.role == Role::Value) {
            EXPECT_FALSE(buffer.persistent);
            ++own;
          }
        EXPECT_EQ(own, scenario.step.accumulate.count) << framework << " " << schedule_name;
      }
    }
}

// Larger budgets are faster, all stages keep to each, and a plan for that budget alone is no
// slower.
TEST(PipelinePlanning, FrontsAreOfCommonBudgets) {
  for (const Case& c : cases) {
    const Scenario scenario =
        pipeline(c.model, c.precision, c.mesh, c.micro_batches, c.schedule, c.batch);
    const Planning planning = plan_within(scenario, {.front_points = 5});
    ASSERT_EQ(planning.fronts.size(), 1u);
    const std::vector<FrontPoint>& points = planning.fronts.front().points;
    ASSERT_GT(points.size(), 1u) << c.model << " " << c.mesh;
    for (std::size_t i = 0; i < points.size(); ++i) {
      ASSERT_EQ(std::ssize(points[i].stages), scenario.step.mesh[Axis::Pipeline]);
      if (i > 0) {
        EXPECT_LT(points[i - 1].budget, points[i].budget) << c.model << " " << c.mesh;
        EXPECT_GT(points[i - 1].report.step, points[i].report.step) << c.model << " " << c.mesh;
      }
      Bytes most;
      for (const StagePlan& stage : points[i].stages)
        most = std::max(most, stage.report.allocated_peak);
      EXPECT_EQ(points[i].budget, most) << c.model << " " << c.mesh;
      const Planning alone = plan_within(scenario, {.budget = most});
      ASSERT_TRUE(alone.feasible) << c.model << " " << c.mesh << " " << to_text(most);
      EXPECT_LE(alone.comparison.rows.back().step, points[i].report.step)
          << c.model << " " << c.mesh << " " << to_text(most);
    }
    EXPECT_LE(points.back().report.step, planning.comparison.rows.front().step);
  }
}

// The least memory for a time: the time is kept, the proof is about those bytes, and what is a
// little less gives no plan that is as fast.
TEST(PipelinePlanning, FindsTheSmallestForATime) {
  for (const Case& c : cases) {
    const Scenario scenario =
        pipeline(c.model, c.precision, c.mesh, c.micro_batches, c.schedule, c.batch);
    const Planning planning = plan_within(scenario, {.max_slowdown = 0.05});
    ASSERT_TRUE(planning.feasible) << c.model << " " << c.mesh;
    const Report& vanilla = planning.comparison.rows.front();
    const Report& row = planning.comparison.rows.back();
    EXPECT_LE(static_cast<double>(row.step.count()),
              1.05 * static_cast<double>(vanilla.step.count()));
    EXPECT_EQ(row.strategy, "plan:+5%");
    EXPECT_LE(planning.lower_bound, row.step);
    const Bytes most = most_measured(planning.stages, Measure::Allocated);
    EXPECT_LT(most, vanilla.allocated_peak) << c.model << " " << c.mesh;
    const Planning less = plan_within(scenario, {.budget = Bytes{most.count * 97 / 100}});
    const auto time = static_cast<double>(less.comparison.rows.back().step.count());
    EXPECT_TRUE(!less.feasible || time > 1.05 * static_cast<double>(vanilla.step.count()))
        << c.model << " " << c.mesh;
  }
}

// One file for all stages: whoever reads it finds what the plan says.
TEST(PipelinePlanning, FilesAreTakenByCompareAndExplain) {
  for (const char* schedule : {"1f1b", "interleaved:v=2"}) {
    Scenario scenario = pipeline("gpt2", Precision::AmpBf16, "pp=3", 6, schedule);
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
  EXPECT_THAT(refusal(pipeline("gpt2", Precision::Fp32, "pp=2", 4, "zb-h1"), {}),
              HasSubstr("--schedule zb-h1"));
  EXPECT_THAT(refusal(plain, {.allowed = {Allowed::Exact, Allowed::Offload}}),
              HasSubstr("--allow exact,offload"));
  EXPECT_THAT(refusal(plain, {.lists_forms = true}), HasSubstr("--forms"));
}

}  // namespace
}  // namespace tidemark::pipeline_planning_test
