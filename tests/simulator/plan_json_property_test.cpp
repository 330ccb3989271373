// Written and read again, a plan is what it was: of every strategy on every family, and at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/plan_json.h"
#include "tests/simulator/random_step.h"
#include "tests/support/all_strategies.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::plan_json_property_test {
namespace {

// Reasons in the order of their first tensor, and none that no tensor has.
Plan in_one_form(const Plan& plan, const Trace& trace) {
  Plan same = keep_everything(trace);
  same.strategy = plan.strategy, same.overlap = plan.overlap, same.quirks = plan.quirks;
  same.left_by = plan.left_by, same.fetched_at = plan.fetched_at;
  same.value_release_after = plan.value_release_after;
  same.gradient_release_after = plan.gradient_release_after;
  same.kept_for_recovery = plan.kept_for_recovery;
  same.lanes = plan.lanes, same.rerun_after = plan.rerun_after;
  for (std::size_t t = 0; t < plan.decisions.size(); ++t)
    if (plan.decisions[t].action == Action::Quantize)
      quantize(same, static_cast<TensorId>(t), encoding_of(plan, static_cast<TensorId>(t)),
               plan.reasons[plan.decisions[t].reason]);
    else
      decide(same, static_cast<TensorId>(t), plan.decisions[t].action,
             plan.reasons[plan.decisions[t].reason]);
  // Both say that the region is recovered as a whole.
  for (Region region : plan.regions) {
    if (region.split == region.end) region.split = region.begin;
    same.regions.push_back(region);
  }
  return same;
}

void expect_read_as_written(const PlannedStep& step) {
  const std::string text = write_plan(step);
  const StrategySpec file = read_plan(text, "x");
  const Plan read = plan_for(*step.trace, *file.plan);
  ASSERT_EQ(in_one_form(read, *step.trace), in_one_form(step.plan, *step.trace)) << text;
  ASSERT_EQ(write_plan({step.trace, read, {}, {}, step.rewrites}), text);
}

class PlanFileOf : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(PlanFileOf, IsReadAsItWasWritten) {
  const Model model = small_models()[std::get<0>(GetParam())];
  const StrategySpec spec = parse_strategy(all_strategies[std::get<1>(GetParam())]);
  for (const Attention attention : {Attention::Math, Attention::Flash}) {
    StepOptions options{.batch = 2};
    options.attention = attention;
    const auto trace = std::make_shared<const Trace>(build_trace(model, options));
    const PlannedStep step = plan_step(trace, spec);
    if (!step.refusal.empty()) continue;
    expect_read_as_written(step);
    // The file rewrites the trace as the strategy does.
    const StrategySpec file = read_plan(write_plan(step), "x");
    const PlannedStep again = plan_step(trace, file);
    ASSERT_EQ(again.refusal, "");
    ASSERT_EQ(*again.trace, *step.trace);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryFamilyAndStrategy, PlanFileOf,
                         testing::Combine(testing::Range(std::size_t{0}, small_models().size()),
                                          testing::Range(std::size_t{0}, all_strategies.size())),
                         [](const auto& test) {
                           std::string name = short_name(small_models()[std::get<0>(test.param)]) +
                                              "_" + all_strategies[std::get<1>(test.param)];
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(PlanFile, OfAnyPlanIsReadAsItWasWritten) {
  constexpr std::uint64_t first_seed = 404, count = 3000;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    Dice dice(seed);
    const auto trace = std::make_shared<const Trace>(random_trace(dice));
    Plan plan = random_plan(*trace, dice);
    // What lies in another's memory follows that one, and no file names it.
    for (std::size_t t = 0; t < plan.decisions.size(); ++t)
      if (trace->tensors[t].storage != static_cast<TensorId>(t)) {
        plan.decisions[t] = {};
        for (auto* ops : {&plan.left_by, &plan.fetched_at, &plan.value_release_after,
                          &plan.gradient_release_after})
          if (!ops->empty()) (*ops)[t] = no_op;
      }
    if (!check(*trace, plan).empty()) continue;
    ++accepted;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_read_as_written({trace, plan, {}});
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(2 * accepted, count);
}

}  // namespace
}  // namespace tidemark::plan_json_property_test
