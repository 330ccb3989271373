// Plans of classes that may change operators: their time and bytes, files, words, and the bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planning/planning.h"
#include "simulator/needs.h"
#include "simulator/plan_json.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::operators_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> operators_of(const PlannedStep& planned) {
  std::vector<std::string> names;
  for (const auto& component : planned.rewrites) names.emplace_back(component.row->name);
  return names;
}

Planning planned_at(const Scenario& scenario, Bytes budget, Allowed allowed) {
  return plan_within(scenario, {.budget = budget, .allowed = {allowed}});
}

// Whatever a strategy does to the network as it is, a plan of the class does as fast. Batches are
// so large that what blocks keep holds the peak: where the optimizer does, which plan fits to the
// byte is fragmentation's chance.
TEST(PlansWithOperators, AreNeverSlowerThanANamedStrategyAtItsOwnBytes) {
  for (const auto& [model, precision] :
       {std::pair{"gpt2", Precision::Fp32}, std::pair{"vit-b-16", Precision::AmpFp16},
        std::pair{"swin-t", Precision::Bf16}, std::pair{"bert-base", Precision::Fp32}}) {
    const Scenario scenario = planned_scenario(model, precision, 32);
    const PlanSearches searches(trace_of(scenario), scenario.device, memory_budget_of(scenario),
                                {.allowed = {Allowed::Anything}});
    for (const char* strategy :
         {"vanilla", "approx-bp", "ms-bp", "lowmemorybp", "mesa", "mesa+lowmemorybp",
          "checkpoint:blocks+lowmemorybp", "checkpoint:blocks+mesa", "mesa:bits=4"}) {
      const Report named = report_of(scenario, strategy);
      if (!named.applies) continue;
      const auto found = searches.within(named.allocated_peak, false);
      ASSERT_TRUE(found) << model << " " << strategy;
      const Report plan = searches.report_of(*found);
      ASSERT_LE(plan.allocated_peak, named.allocated_peak) << model << " " << strategy;
      ASSERT_LE(plan.step, named.step) << model << " " << strategy;
      const double link = scenario.device.host_link_bytes_per_second * 1e-9;
      ASSERT_LE(searches.lower_bound(named.allocated_peak.count, link, joins_blocks(*found)),
                plan.step)
          << model << " " << strategy;
    }
  }
}

double noise_of_operators(const Trace& trace) {
  const GradientNoise noise(trace, derive_needs(trace));
  double sum = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) sum += noise.of_op(static_cast<OpId>(i));
  return sum;
}

// Codes belong to groups about which something is decided; operators also to others, as the GELU of
// BERT's head does.
TEST(PlansWithOperators, SayHowFarGradientsAreFromExactOnes) {
  for (const char* model : {"bert-base", "gpt2"}) {
    SCOPED_TRACE(model);
    const Scenario scenario = planned_scenario(model, Precision::Fp32, 32);
    const Bytes budget = report_of(scenario, "mesa:bits=4").allocated_peak;
    for (const Allowed allowed : {Allowed::Exact, Allowed::Lossy, Allowed::Anything}) {
      const Planning planning = planned_at(scenario, budget, allowed);
      double codes = 0;
      for (const PlanGroup& group : planning.groups) codes += group.error.codes;
      EXPECT_NEAR(planning.error.codes, codes, 1e-9 * codes);
      EXPECT_NEAR(planning.error.operators, noise_of_operators(*planning.planned.trace), 1e-9);
      EXPECT_EQ(planning.error.square() > 0, allowed != Allowed::Exact);
      EXPECT_EQ(planning.error.codes > 0, fewest_bits(planning.planned.plan) > 0);
    }
  }
}

// Plans keep to a bound on errors, and to the budget; the wider it is, the faster they are.
TEST(PlansWithOperators, KeepToABoundOnErrors) {
  for (const auto& [model, precision] :
       {std::pair{"gpt2", Precision::Fp32}, std::pair{"vit-b-16", Precision::AmpFp16}}) {
    SCOPED_TRACE(model);
    const Scenario scenario = planned_scenario(model, precision, 32);
    const Bytes budget = report_of(scenario, "mesa").allocated_peak;
    Nanoseconds last = planned_at(scenario, budget, Allowed::Exact).comparison.rows.back().step;
    for (const double most : {1e-6, 0.003, 0.02, 2.0}) {
      const Planning planning = plan_within(
          scenario, {.budget = budget, .allowed = {Allowed::Lossy}, .max_gradient_error = most});
      const Report& row = planning.comparison.rows.back();
      ASSERT_TRUE(planning.feasible) << most;
      EXPECT_LE(row.allocated_peak, budget) << most;
      EXPECT_LE(planning.error.overall(), most);
      EXPECT_LE(planning.lower_bound, row.step) << most;
      // What is no faster by a thousandth gives way to exact plans.
      EXPECT_LE(static_cast<double>(row.step.count()), 1.002 * static_cast<double>(last.count()));
      EXPECT_EQ(planning.exact.has_value(), planning.error.square() > 0) << most;
      last = row.step;
    }
    // Wide bounds cost what cells of errors do: 0.2 % measured.
    const Nanoseconds least =
        planned_at(scenario, budget, Allowed::Lossy).comparison.rows.back().step;
    EXPECT_LE(static_cast<double>(last.count()), 1.003 * static_cast<double>(least.count()));
  }
}

// Where nothing has to be saved, approximations are there for speed alone: that is said, and they
// stay away where they bring none.
TEST(PlansWithOperators, SayWhatExactGradientsWouldTake) {
  const Scenario fast = planned_scenario("gpt2", Precision::Fp32);
  const Planning faster = planned_at(fast, gib(70), Allowed::Lossy);
  ASSERT_TRUE(faster.exact);
  EXPECT_TRUE(faster.exact->keeps_all);
  EXPECT_EQ(faster.exact->step, faster.comparison.rows.front().step);
  EXPECT_LT(faster.comparison.rows.back().step, faster.exact->step);
  const Bytes tight = report_of(fast, "mesa").allocated_peak;
  const Planning smaller = planned_at(fast, tight, Allowed::Lossy);
  ASSERT_TRUE(smaller.exact);
  EXPECT_FALSE(smaller.exact->keeps_all);
  EXPECT_EQ(smaller.exact->step,
            planned_at(fast, tight, Allowed::Exact).comparison.rows.back().step);
  const Planning exact = plan_within(
      fast, {.budget = gib(70), .allowed = {Allowed::Lossy}, .max_gradient_error = 1e-6});
  EXPECT_FALSE(exact.exact);
  EXPECT_EQ(exact.error.square(), 0);  // MS norms may be there: their gradients are exact
  EXPECT_LE(exact.comparison.rows.back().step, exact.comparison.rows.front().step);
  EXPECT_EQ(exact.comparison.rows.back().caution, "");
}

TEST(PlansWithOperators, AreLeftToClassesThatSaySo) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Report named = report_of(scenario, "lowmemorybp");
  const Planning lossy = planned_at(scenario, named.allocated_peak, Allowed::Lossy);
  EXPECT_THAT(operators_of(lossy.planned), testing::ElementsAre("lowmemorybp"));
  EXPECT_THAT(lossy.comparison.rows.back().caution, HasSubstr("GELU and SiLU are approximate"));
  for (const Allowed allowed : {Allowed::Exact, Allowed::Offload}) {
    const Planning exact = planned_at(scenario, named.allocated_peak, allowed);
    EXPECT_THAT(operators_of(exact.planned), IsEmpty());
    EXPECT_EQ(*exact.planned.trace, *exact.trace);
    EXPECT_EQ(exact.comparison.rows.back().caution, "");
    EXPECT_GT(exact.comparison.rows.back().step, lossy.comparison.rows.back().step);
  }
}

// PyTorch's checkpoints wrap what is there.
TEST(PlansWithOperators, AreNoFormOfCheckpoints) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Bytes budget = report_of(scenario, "lowmemorybp").allocated_peak;
  for (const PlanForm form : {PlanForm::Blocks, PlanForm::Policy}) {
    const Planning planning =
        plan_within(scenario, {.budget = budget, .form = form, .allowed = {Allowed::Lossy}});
    EXPECT_THAT(operators_of(planning.planned), IsEmpty());
  }
}

// The file says what rewrote the step, and is read back as the same step.
TEST(PlansWithOperators, AreWrittenToFiles) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Bytes budget{report_of(scenario, "lowmemorybp").allocated_peak.count * 8 / 10};
  const Planning planning = planned_at(scenario, budget, Allowed::Lossy);
  ASSERT_TRUE(planning.feasible);
  ASSERT_THAT(operators_of(planning.planned), testing::Not(IsEmpty()));
  const StrategySpec file = read_plan(write_plan(planning.planned), "x.plan.json");
  const PlannedStep read = plan_step(planning.trace, file);
  ASSERT_EQ(read.refusal, "");
  EXPECT_EQ(*read.trace, *planning.planned.trace);
  EXPECT_EQ(operators_of(read), operators_of(planning.planned));
  const Report row =
      evaluate(planning.trace, file, scenario.device, planning.comparison.budget).report;
  EXPECT_EQ(row.step, planning.comparison.rows.back().step);
  EXPECT_EQ(row.allocated_peak, planning.comparison.rows.back().allocated_peak);
  EXPECT_EQ(row.caution, planning.comparison.rows.back().caution);
}

// Sums may count a little more for the optimizer's step than the allocator hands out. The plan that
// keeps everything keeps to its own bytes all the same.
TEST(PlansWithOperators, VanillaKeepsToItsOwnBytesWhereTheOptimizerHoldsThePeak) {
  const Scenario scenario = planned_scenario("llama-7b", Precision::Bf16, 2);
  const Report vanilla = report_of(scenario, "vanilla");
  const Planning planning = planned_at(scenario, vanilla.allocated_peak, Allowed::Exact);
  ASSERT_TRUE(planning.feasible);
  EXPECT_EQ(planning.comparison.rows.back().step, vanilla.step);
}

}  // namespace
}  // namespace tidemark::operators_test
