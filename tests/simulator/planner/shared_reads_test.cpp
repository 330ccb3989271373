// T5: scores are changed in place, and all blocks read one bias that no gradient needs. What reruns
// read stays for all of them, whichever runs again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::shared_reads_test {
namespace {

std::shared_ptr<const Trace> t5(Precision precision) {
  const StepOptions step{.batch = 4, .precision = precision};
  return std::make_shared<const Trace>(build_trace(find_model("t5-base"), step));
}

Planner planner_of(const std::shared_ptr<const Trace>& trace) {
  return {trace, find_device("a100-80gb"), {}};
}

std::int64_t simulated(const Trace& trace, const Schedule& schedule) {
  return simulate(trace, schedule, find_device("a100-80gb")).duration.count();
}

TEST(SharedReads, OfAllStagesTogetherAreNoMoreThanIsThere) {
  const auto trace = t5(Precision::Fp32);
  const Needs needs = derive_needs(*trace);
  std::map<TensorId, std::int64_t> bytes;
  std::size_t several = 0;
  for (const Stage& stage : stages_of(*trace, needs).all)
    for (const auto& [storage, part] : stage.shared_reads) {
      several += bytes[storage] > 0;
      bytes[storage] += part;
    }
  EXPECT_GT(several, 30u);  // the encoder's bias, the decoder's, and its mask of the encoder
  for (const auto& [storage, sum] : bytes) {
    const std::int64_t whole = rounded(size((*trace)[storage]));
    EXPECT_LE(sum, whole) << (*trace)[storage].name;
    EXPECT_GT(sum, whole * 9 / 10) << (*trace)[storage].name;
  }
}

// What a lowering is measured beside does not matter: sums are never below what a plan needs.
TEST(SharedReads, AreInEverySum) {
  for (const Precision precision : {Precision::Fp32, Precision::AmpBf16}) {
    const auto trace = t5(precision);
    const Planner planner = planner_of(trace);
    for (std::size_t i = 0; i <= 24; ++i) {
      const std::size_t point = i * (planner.size() - 1) / 24;
      const std::int64_t peak = rounded_live_peak(lower(*trace, planner.plan_at(point)));
      ASSERT_LE(peak, planner[point].bytes) << to_string(precision) << " point " << point;
      ASSERT_GE(peak, planner[point].bytes * 95 / 100) << to_string(precision) << " " << point;
    }
  }
}

// Who works in place runs again with whom it changes, and what all of them read is counted.
TEST(SharedReads, BoundIsNearTheFront) {
  const Planner planner = planner_of(t5(Precision::Fp32));
  const std::int64_t least = planner[0].bytes, most = planner[planner.size() - 1].bytes;
  for (const int quarter : {1, 2, 3}) {
    const std::int64_t bytes = least + (most - least) * quarter / 4;
    const auto point = planner.within(bytes);
    ASSERT_TRUE(point);
    EXPECT_LT(planner[*point].time, planner.lower_bound_of_joined(bytes) * 1004 / 1000) << quarter;
  }
}

// Few blocks run again, or nearly all: who does not leaves the bias to the others.
TEST(SharedReads, BoundIsBelowMixtures) {
  for (const Precision precision : {Precision::Fp32, Precision::AmpBf16}) {
    const auto trace = t5(precision);
    const Planner planner = planner_of(trace);
    const Stages& stages = planner.stages();
    for (std::uint64_t seed = 1; seed <= 40; seed += 2) {
      Dice dice(seed);
      std::vector<LocalPlan> kept;
      for (const Stage& stage : stages.all) kept.push_back(keep_all(stage));
      std::vector<const LocalPlan*> locals;
      for (std::size_t s = 0; s < stages.all.size(); ++s) {
        const auto& menu = planner.menu(stages.all[s].kind);
        const bool keeps = dice.below(40) < seed;
        locals.push_back(keeps ? &kept[s] : &menu[dice.below(menu.size())].plan);
      }
      const Schedule schedule = lower(*trace, assembled(*trace, stages, locals));
      const std::int64_t bytes = rounded_live_peak(schedule), time = simulated(*trace, schedule);
      ASSERT_LE(planner.lower_bound(bytes), time) << to_string(precision) << " seed " << seed;
      ASSERT_LE(planner.lower_bound_of_joined(bytes), time) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tidemark::shared_reads_test
