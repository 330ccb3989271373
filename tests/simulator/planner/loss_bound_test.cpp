// Where a loss has its gradient, its stage still holds what gradients need that come later.
#include <gtest/gtest.h>

#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::loss_bound_test {
namespace {

std::shared_ptr<const Trace> trace_of(const char* model, Precision precision) {
  const StepOptions step{.batch = 16, .precision = precision};
  return std::make_shared<const Trace>(build_trace(find_model(model), step));
}

Planner planner_of(const std::shared_ptr<const Trace>& trace) {
  return {trace, find_device("a100-80gb"), {}};
}

// BERT's logits: of what log_softmax makes 16 bits stay beside 32. Gaps are 0.90, 1.07 and 0.37 %,
// and 1.6 to 1.8 % without that.
TEST(LossBound, IsNearTheFront) {
  const Planner planner = planner_of(trace_of("bert-large", Precision::AmpBf16));
  const std::int64_t least = planner[0].bytes, most = planner[planner.size() - 1].bytes;
  for (const int quarter : {1, 2, 3}) {
    const std::int64_t bytes = least + (most - least) * quarter / 4;
    const auto point = planner.within(bytes);
    ASSERT_TRUE(point);
    EXPECT_LT(planner[*point].time, planner.lower_bound_of_joined(bytes) * 1012 / 1000) << quarter;
  }
}

// The loss keeps what it needs least of, or most, and blocks do whatever they may.
TEST(LossBound, IsBelowMixtures) {
  for (const char* model : {"bert-base", "gpt2", "vit-b-16"})
    for (const Precision precision : {Precision::Fp32, Precision::AmpBf16}) {
      const auto trace = trace_of(model, precision);
      const Planner planner = planner_of(trace);
      const Stages& stages = planner.stages();
      for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        Dice dice(seed);
        std::vector<const LocalPlan*> locals;
        for (const Stage& stage : stages.all) {
          const auto& menu = planner.menu(stage.kind);
          locals.push_back(&menu[dice.below(menu.size())].plan);
        }
        const Schedule schedule = lower(*trace, assembled(*trace, stages, locals));
        const std::int64_t bytes = rounded_live_peak(schedule);
        const std::int64_t time =
            simulate(*trace, schedule, find_device("a100-80gb")).duration.count();
        ASSERT_LE(planner.lower_bound(bytes), time) << model << " seed " << seed;
        ASSERT_LE(planner.lower_bound_of_joined(bytes), time) << model << " seed " << seed;
      }
    }
}

}  // namespace
}  // namespace tidemark::loss_bound_test
