// Coupled blocks in plans: whose inputs follow from their outputs, beside such that keep them.
#include "simulator/strategies/couplings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::couplings_test {
namespace {

using testing::IsEmpty;

struct Case {
  const char* model;
  Precision precision;
  std::int64_t accumulate = 1;
};

constexpr std::array cases = {Case{"gpt2", Precision::Fp32}, Case{"vit-b-16", Precision::AmpFp16},
                              Case{"swin-t", Precision::Fp32}, Case{"bert-base", Precision::Bf16},
                              Case{"gpt2", Precision::Bf16, 3}};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << to_string(c.precision) << " × " << c.accumulate;
}

std::shared_ptr<const Trace> plain_of(const Case& c) {
  StepOptions step{.batch = 4, .precision = c.precision};
  step.accumulate.count = c.accumulate;
  return std::make_shared<const Trace>(build_trace(find_model(c.model), step));
}

PlannedStep coupled(const Case& c) {
  PlannedStep step = plan_step(plain_of(c), parse_strategy("reversible"));
  EXPECT_EQ(step.refusal, "") << c;
  return step;
}

const Device& device() {
  static const Device found = find_device("a100-80gb");
  return found;
}

std::int64_t simulated(const Trace& trace, const Schedule& schedule) {
  return simulate(trace, schedule, device()).duration.count();
}

std::int64_t reconstructed(const Plan& plan) {
  return std::ranges::count(plan.decisions, Action::Reconstruct, &Decision::action);
}

// Does a stage between two stacks run some of its ops again?
bool reruns_behind_stack(const Planner& planner, std::size_t point) {
  return std::ranges::any_of(planner.parts_at(point), [](const Planner::Part& part) {
    return part.first > 0 && part.stage->block < 0 && !part.entry->plan.regions.empty();
  });
}

TEST(Couplings, ArePlannedWhereBlocksAreCoupled) {
  for (const Case& c : cases) {
    const auto plain = plain_of(c);
    EXPECT_THAT(plans_of_couplings(*plain, derive_needs(*plain)), IsEmpty()) << c;
    const PlannedStep step = coupled(c);
    const std::vector<Plan> plans = plans_of_couplings(*step.trace, derive_needs(*step.trace));
    ASSERT_EQ(plans.size(), 2u) << c;
    EXPECT_EQ(plans.front().decisions, step.plan.decisions) << c;
    EXPECT_EQ(plans.front().regions, step.plan.regions) << c;
  }
}

// To the byte, also behind stacks: who merges the stages of Swin reads outputs that no gradient
// needs, and may read them again.
TEST(Couplings, AddUp) {
  std::int64_t undoing = 0, behind = 0;
  for (const Case& c : cases) {
    const PlannedStep step = coupled(c);
    const Planner planner(step.trace, device(), {}, {.undoes_couplings = true});
    for (std::size_t i = 0; i <= 48; ++i) {
      const std::size_t point = i * (planner.size() - 1) / 48;
      const Plan plan = planner.plan_at(point);
      ASSERT_THAT(check(*step.trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*step.trace, plan);
      ASSERT_THAT(validate(*step.trace, schedule), IsEmpty()) << c;
      ASSERT_EQ(rounded_live_peak(schedule), planner[point].bytes) << c << " point " << point;
      ASSERT_LE(planner[point].time, simulated(*step.trace, schedule) + 1000) << c;
      undoing += reconstructed(plan) > 0;
      behind += reruns_behind_stack(planner, point);
    }
  }
  EXPECT_GT(undoing, 3);
  EXPECT_GT(behind, 3);
}

// What keeps nothing between blocks needs less than any checkpoint.
TEST(Couplings, ReachBelowPlansThatKeepInputs) {
  const PlannedStep step = coupled(cases[0]);
  const Planner keeping(step.trace, device(), {});
  const Planner undoing(step.trace, device(), {}, {.undoes_couplings = true});
  EXPECT_LT(undoing[0].bytes, keeping[0].bytes);
  const Schedule schedule = lower(step);
  const auto point = undoing.within(rounded_live_peak(schedule));
  ASSERT_TRUE(point);
  EXPECT_LE(undoing[*point].time, simulated(*step.trace, schedule));
}

TEST(Couplings, BoundIsBelowStrategiesAndMixtures) {
  for (const Case& c : cases) {
    const PlannedStep step = coupled(c);
    const Planner planner(step.trace, device(), {}, {.undoes_couplings = true});
    const auto holds = [&](const Schedule& schedule) {
      const std::int64_t bytes = rounded_live_peak(schedule);
      const std::int64_t time = simulated(*step.trace, schedule);
      if (schedule.streams == 1) {
        ASSERT_LE(planner.lower_bound(bytes), time) << c;
      }
      ASSERT_LE(planner.lower_bound_of_joined(bytes), planner.lower_bound(bytes)) << c;
      ASSERT_LE(planner.lower_bound_of_streams(bytes), time) << c;
    };
    holds(lower(step));
    for (Plan plan : plans_of_couplings(*step.trace, planner.needs())) {
      holds(lower(*step.trace, plan));
      plan.overlap = true;
      holds(lower(*step.trace, plan));
    }
    Dice dice(3);
    for (int i = 0; i < 25; ++i) {
      std::vector<const LocalPlan*> locals;
      for (const Stage& stage : planner.stages().all)
        locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
      Plan plan = assembled(*step.trace, planner.stages(), locals);
      ASSERT_THAT(check(*step.trace, plan), IsEmpty()) << c;
      holds(lower(*step.trace, plan));
      recover_beside_gradients(plan);
      holds(lower(*step.trace, plan));
    }
  }
}

}  // namespace
}  // namespace tidemark::couplings_test
