// What runs again waits for the gradients beside which it saves most.
#include "simulator/planner/meetings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/simulate.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::meetings_test {
namespace {

using testing::IsEmpty;

// Kernels of all sizes wait for nobody's launches.
const Device& device() {
  static const Device without_launches = [] {
    Device found = find_device("a100-80gb");
    found.host_launch = {};
    return found;
  }();
  return without_launches;
}

PlannedStep checkpointed(const char* model, StepOptions options, const char* strategy) {
  PlannedStep step =
      plan_step(std::make_shared<const Trace>(build_trace(find_model(model), options)),
                parse_strategy(strategy));
  EXPECT_EQ(step.refusal, "");
  step.derived = derived_of(step);
  return step;
}

std::int64_t time_of(const PlannedStep& step) {
  return simulate(*step.trace, lower(step), device()).duration.count();
}

PlannedStep met(const PlannedStep& step, std::uint8_t lanes) {
  PlannedStep found = step;
  found.plan = meet_gradients(step, CostModel(*step.trace, step.derived->needs, device()), lanes);
  return found;
}

struct Case {
  const char* model;
  Precision precision;
  const char* strategy;
  const char* tuning = "full";
  std::int64_t accumulate = 1;
};

constexpr std::array cases = {
    Case{"gpt2", Precision::AmpBf16, "checkpoint+overlap"},
    Case{"gpt2", Precision::AmpBf16, "checkpoint:every=2+overlap", "full", 3},
    Case{"vit-b-16", Precision::AmpFp16, "checkpoint:every=3+overlap"},
    Case{"swin-t", Precision::Fp32, "checkpoint+overlap"},
    Case{"llama-3.2-1b", Precision::Bf16, "checkpoint+overlap", "lora:r=8,targets=q,v"},
    Case{"vit-b-16", Precision::Bf16, "pareprop"}};

PlannedStep step_of(const Case& c) {
  StepOptions options{.batch = 4, .precision = c.precision, .tuning = parse_tuning(c.tuning)};
  options.accumulate.count = c.accumulate;
  return checkpointed(c.model, options, c.strategy);
}

// In issue order nothing changes: what is there does not, but for what waits to be known as free.
TEST(Meetings, NoStepIsLongerAndPlansAreValid) {
  for (const Case& c : cases) {
    const PlannedStep plain = step_of(c);
    for (std::uint8_t lanes = least_lanes; lanes <= most_lanes; ++lanes) {
      PlannedStep waits_for_nothing = plain;
      waits_for_nothing.plan.lanes = lanes;
      const PlannedStep found = met(plain, lanes);
      ASSERT_THAT(check(*found.trace, found.plan), IsEmpty()) << c.model;
      const Schedule schedule = lower(found);
      ASSERT_THAT(validate(*found.trace, schedule), IsEmpty()) << c.model;
      // 0.1 %: a state's clock knows no launches, and rounds nothing.
      EXPECT_LE(static_cast<double>(time_of(found)),
                1.001 * static_cast<double>(time_of(waits_for_nothing)))
          << c.model << " " << int{lanes};
      EXPECT_EQ(count_runs(schedule, Task::Recompute), count_runs(lower(plain), Task::Recompute));
    }
  }
}

// The composed GELU of GPT-2 under autocast streams memory for two ms, and so do its gradients,
// that of the block behind among them: at once, the two gain nothing from each other.
TEST(Meetings, WaitForProductsWhatMemoryLimits) {
  const PlannedStep plain =
      checkpointed("gpt2", {.batch = 16, .precision = Precision::AmpBf16}, "checkpoint+overlap");
  const auto two = static_cast<double>(time_of(plain));
  EXPECT_LT(static_cast<double>(time_of(met(plain, 2))), 0.985 * two);
  EXPECT_LT(static_cast<double>(time_of(met(plain, 4))), 0.97 * two);
}

// No plan that differs in what one rerun waits for is shorter.
TEST(Meetings, NoOtherWaitOfOneRerunIsBetter) {
  Model model = find_model("vit-b-16");
  const auto trace = std::make_shared<const Trace>(
      build_trace(model, {.batch = 32, .precision = Precision::AmpFp16}));
  PlannedStep step = plan_step(trace, parse_strategy("checkpoint+overlap"));
  step.derived = derived_of(step);
  const PlannedStep found = met(step, 3);
  const auto least = static_cast<double>(time_of(found));
  const Recovery& recovery = step.derived->recovery;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < trace->ops.size(); ++i) {
    const std::size_t region = region_of(step.plan, static_cast<OpId>(i));
    if (!recovery.reruns[i] || region + 2 >= step.plan.regions.size() || region % 4 != 0) continue;
    const std::size_t end = index(step.plan.regions[region].end);
    for (std::size_t after = end; after < index(step.plan.regions[region + 2].end); after += 3) {
      PlannedStep other = found;
      other.plan.rerun_after.resize(trace->ops.size(), no_op);
      other.plan.rerun_after[i] = static_cast<OpId>(after);
      ASSERT_GT(static_cast<double>(time_of(other)), 0.9999 * least) << trace->ops[i].name;
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

TEST(Meetings, APlanWithoutReRunsIsLeftAsItIs) {
  const PlannedStep plain = checkpointed("vit-b-16", {.batch = 4}, "vanilla");
  const PlannedStep found = met(plain, least_lanes);
  EXPECT_EQ(found.plan, plain.plan);
}

}  // namespace
}  // namespace tidemark::meetings_test
