// Plans of pipeline stages: several micro-batches are kept at once, in the order of the schedule.
#include "simulator/planner/in_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::in_flight_test {
namespace {

using testing::IsEmpty;

struct Case {
  const char* model;
  Precision precision;
  std::int64_t stages, stage, batches;
  const char* schedule = "1f1b";
  std::int64_t tensor = 1;
};

constexpr std::array cases = {
    Case{"gpt2", Precision::Fp32, 3, 0, 8},
    Case{"gpt2", Precision::Fp32, 3, 1, 8},
    Case{"gpt2", Precision::AmpBf16, 3, 0, 3},
    Case{"gpt2", Precision::AmpBf16, 3, 0, 5, "gpipe"},
    Case{"gpt2", Precision::Bf16, 3, 2, 4},
    Case{"bert-base", Precision::Bf16, 4, 0, 2},
    Case{"bert-base", Precision::Fp32, 2, 0, 9},
    Case{"vit-b-16", Precision::AmpFp16, 4, 1, 4},
    Case{"gpt2", Precision::Bf16, 2, 0, 4, "1f1b", 2},
    Case{"gpt2", Precision::Bf16, 2, 0, 1},
    Case{"gpt2", Precision::Fp32, 2, 0, 4, "interleaved:v=2"},
    Case{"gpt2", Precision::AmpBf16, 2, 1, 6, "interleaved:v=3"},
    Case{"gpt2", Precision::AmpBf16, 3, 2, 3, "interleaved:v=2"},
    Case{"bert-base", Precision::Bf16, 3, 1, 5, "interleaved:v=4,group=5"},
    Case{"gpt2", Precision::Bf16, 2, 1, 3, "interleaved:v=2,group=3,blocks=3-0-4-5"},
    Case{"bert-base", Precision::AmpBf16, 2, 0, 2, "interleaved:v=2"},
    Case{"vit-b-16", Precision::AmpFp16, 2, 1, 2, "interleaved:v=2"},
    Case{"gpt2", Precision::Bf16, 2, 0, 4, "interleaved:v=2", 2}};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << to_string(c.precision) << " pp" << c.stage << " of " << c.stages
             << " × " << c.batches << " " << c.schedule;
}

std::shared_ptr<const Trace> stage_of(const Case& c) {
  StepOptions step{.batch = 2, .precision = c.precision};
  step.accumulate.count = c.batches;
  step.mesh[Axis::Pipeline] = c.stages;
  step.mesh[Axis::Tensor] = c.tensor;
  step.schedule = parse_schedule(c.schedule);
  step.rank = RankClass{c.stage};
  return std::make_shared<const Trace>(build_rank_trace(find_model(c.model), step));
}

const Device& device() {
  static const Device found = find_device("a100-80gb");
  return found;
}

StepOptions options(std::int64_t stages, std::int64_t stage, std::int64_t batches,
                    const char* schedule) {
  StepOptions step;
  step.accumulate.count = batches;
  step.mesh[Axis::Pipeline] = stages;
  step.schedule = parse_schedule(schedule);
  step.rank = RankClass{stage};
  return step;
}

// The most while a forward runs, or a backward that is not the first; -1 if there is none.
std::pair<std::int64_t, std::int64_t> others(const StepOptions& step) {
  std::pair<std::int64_t, std::int64_t> most = {-1, -1};
  for (const Moment& moment : moments_of(step)) {
    if (!moment.is_backward) most.first = std::max(most.first, moment.beside.front().kept);
    if (moment.is_backward && moment.is_later())
      most.second = std::max(most.second, moment.beside.front().kept);
  }
  return most;
}

TEST(BatchesInFlight, CountsOthers) {
  EXPECT_EQ(others(options(1, 0, 8, "1f1b")), std::pair(0l, 0l));
  EXPECT_EQ(others(options(3, 0, 4, "1f1b")), std::pair(2l, 2l));
  EXPECT_EQ(others(options(3, 0, 3, "1f1b")), std::pair(2l, 1l));
  EXPECT_EQ(others(options(3, 2, 4, "1f1b")), std::pair(0l, 0l));
  EXPECT_EQ(others(options(3, 2, 4, "gpipe")), std::pair(3l, 2l));
  EXPECT_EQ(others(options(3, 0, 1, "gpipe")), std::pair(0l, -1l));
  EXPECT_EQ(most_kept(moments_of(options(3, 0, 4, "1f1b"))), 3);
}

// The last of two stages, chunks a and b: Fa0 Fa1 Fb0 Bb0 Fb1 Bb1 Ba0 Ba1.
TEST(BatchesInFlight, CountsChunks) {
  const std::vector<Moment> moments = moments_of(options(2, 1, 2, "interleaved:v=2"));
  using Chunks = std::vector<ChunkInFlight>;
  const std::vector<Moment> expected = {
      {false, 0, Chunks{{1, 1, false}, {0, 0, false}}},  // Fa1
      {false, 1, Chunks{{2, 2, false}, {0, 0, false}}},  // Fb0
      {true, 1, Chunks{{2, 1, false}, {0, 0, false}}},   // Bb0: Fb1 lets go what is held
      {false, 1, Chunks{{2, 1, false}, {0, 0, true}}},   // Fb1
      {true, 1, Chunks{{2, 0, false}, {0, 0, true}}},    // Bb1
      {true, 0, Chunks{{1, 0, false}, {0, 0, true}}},    // Ba0
      {true, 0, Chunks{{0, 0, true}, {0, 0, true}}}};    // Ba1
  EXPECT_EQ(moments, expected);
}

// What is promised is what is lowered in the stage's own order: bytes to the byte, and no more
// time: where the device waits for the host it takes longer.
TEST(BatchesInFlight, AddsUp) {
  std::int64_t recomputing = 0;
  for (const Case& c : cases) {
    const auto trace = stage_of(c);
    const Planner planner(trace, device(), {});
    for (std::size_t i = 0; i <= 20; ++i) {
      const std::size_t point = i * (planner.size() - 1) / 20;
      const Plan plan = planner.plan_at(point);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      ASSERT_EQ(rounded_live_peak(schedule), planner[point].bytes) << c << " point " << point;
      const std::int64_t time = simulate(*trace, schedule, device()).duration.count();
      ASSERT_LE(planner[point].time, time + 1000) << c << " point " << point;
      recomputing += !plan.regions.empty();
    }
  }
  EXPECT_GT(recomputing, 50);
}

// No plan that is put together from anything on the menus is above the front or below the bound.
TEST(BatchesInFlight, BoundIsBelowMixtures) {
  for (const Case& c : cases) {
    const auto trace = stage_of(c);
    const Planner planner(trace, device(), {});
    Dice dice(5);
    const auto holds = [&](const Plan& plan) {
      const Schedule schedule = lower(*trace, plan);
      const std::int64_t bytes = rounded_live_peak(schedule);
      const std::int64_t time = simulate(*trace, schedule, device()).duration.count();
      ASSERT_LE(planner.lower_bound(bytes), time) << c;
      ASSERT_LE(planner.lower_bound_of_joined(bytes), planner.lower_bound(bytes)) << c;
    };
    for (const char* name : {"vanilla", "checkpoint", "checkpoint:selective"})
      holds(plan_step(trace, parse_strategy(name)).plan);
    for (int i = 0; i < 25; ++i) {
      std::vector<const LocalPlan*> locals;
      for (const Stage& stage : planner.stages().all)
        locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
      holds(assembled(*trace, planner.stages(), locals));
    }
  }
}

// Kept bytes count as often as micro-batches are in flight: a front of one alone would not say what
// is fastest. The bound says that this one does.
TEST(BatchesInFlight, FrontIsNearTheBound) {
  for (const Case& c : cases) {
    if (c.batches == 1) continue;
    const auto trace = stage_of(c);
    const Planner planner(trace, device(), {});
    const std::int64_t least = planner[0].bytes, most = planner[planner.size() - 1].bytes;
    for (const std::int64_t percent : {30, 50, 70}) {
      const std::int64_t bytes = least + (most - least) * percent / 100;
      const auto point = planner.within(bytes);
      ASSERT_TRUE(point) << c;
      const double gap = static_cast<double>(planner[*point].time) /
                             static_cast<double>(planner.lower_bound(bytes)) -
                         1;
      EXPECT_LT(gap, 0.03) << c << " " << percent << " %";
    }
  }
}

}  // namespace
}  // namespace tidemark::in_flight_test
