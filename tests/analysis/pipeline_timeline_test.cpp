// A stage's step on its pipeline's clock: what happens and in which order is as it was, no run is
// longer, and nothing begins before what it waits for is there.
#include "analysis/pipeline_timeline.h"

#include <gmock/gmock.h>

#include "analysis/comparison.h"
#include "analysis/rank_report.h"
#include "analysis/step_times.h"
#include "traces/presets.h"

namespace tidemark::pipeline_timeline_test {
namespace {

Nanoseconds ns(std::int64_t count) { return Nanoseconds{count}; }

// Two micro-batches, forward and backward of 10 each in the order F F B B, and an update of 5. Each
// makes a buffer when it begins, which its backward gives back at its end.
struct Toy {
  Trace trace;
  Schedule schedule;
  Timeline timeline;

  Toy() {
    trace.ops.resize(1);
    const auto add = [&](Task task, std::int64_t begin, std::int64_t end, OpId op) {
      schedule.steps.emplace_back(Run{task, StreamId::Compute, op, 0, 0, 0});
      timeline.runs.push_back({static_cast<std::uint32_t>(schedule.steps.size() - 1),
                               StreamId::Compute, ns(begin), ns(end)});
    };
    add(Task::Forward, 0, 10, OpId{0});
    add(Task::Forward, 10, 20, OpId{0});
    add(Task::Seed, 20, 22, OpId{0});
    add(Task::Backward, 22, 30, OpId{0});
    add(Task::Seed, 30, 32, OpId{0});
    add(Task::Backward, 32, 40, OpId{0});
    add(Task::Optimizer, 40, 45, no_op);
    schedule.buffers.resize(2, {.size = {8}});
    const auto event = [&](std::int64_t time, std::uint32_t buffer, bool appears) {
      timeline.memory.push_back({ns(time), BufferId{buffer}, appears});
    };
    event(0, 0, true), event(10, 1, true), event(30, 0, false), event(40, 1, false);
    timeline.duration = ns(45), timeline.idle = ns(0);
  }
};

std::vector<PipelinePass> toy_passes() {
  return {{{StageWork::Forward, 0}, ns(5), ns(15)},
          {{StageWork::Forward, 1}, ns(15), ns(25)},
          {{StageWork::Backward, 0}, ns(40), ns(50)},
          {{StageWork::Backward, 1}, ns(60), ns(70)}};
}

TEST(PipelineTimeline, MovesEachPassToItsTurn) {
  const Toy toy;
  const Timeline made =
      on_pipeline_clock(toy.trace, toy.schedule, toy.timeline, toy_passes(), ns(80), ns(85));
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const TimedRun& run : made.runs) runs.emplace_back(run.begin.count(), run.end.count());
  EXPECT_THAT(runs, testing::ElementsAre(std::pair(5, 15), std::pair(15, 25), std::pair(40, 42),
                                         std::pair(42, 50), std::pair(60, 62), std::pair(62, 70),
                                         std::pair(80, 85)));
  // What begins with a pass waits with it; what ends with one ends before the wait.
  std::vector<std::int64_t> times;
  for (const MemoryEvent& event : made.memory) times.push_back(event.time.count());
  EXPECT_THAT(times, testing::ElementsAre(5, 15, 50, 70));
  EXPECT_EQ(made.duration, ns(85));
  EXPECT_EQ(made.idle, ns(40));
}

TEST(PipelineTimeline, EndsWithTheStepOfAll) {
  const Toy toy;
  const auto end = [&](std::int64_t step) {
    return on_pipeline_clock(toy.trace, toy.schedule, toy.timeline, toy_passes(), ns(80), ns(step))
        .duration;
  };
  EXPECT_EQ(end(120), ns(120));  // another stage's update takes longer
  EXPECT_EQ(end(0), ns(85));     // never before its own
}

// An event of the same moment that stands behind one which waits waits with it.
TEST(PipelineTimeline, KeepsTheOrderOfEventsOfOneMoment) {
  Toy toy;
  toy.timeline.memory = {
      {ns(20), BufferId{0}, true}, {ns(20), BufferId{1}, true}, {ns(20), BufferId{0}, false}};
  const Timeline made =
      on_pipeline_clock(toy.trace, toy.schedule, toy.timeline, toy_passes(), ns(80), ns(85));
  for (const MemoryEvent& event : made.memory) EXPECT_EQ(event.time, ns(40));
}

// Two micro-batches where the pipeline has four, and nothing tells which is whose: equal parts.
TEST(PipelineTimeline, PassesThatCannotBeToldApartAreEqualParts) {
  Toy toy;
  std::vector<PipelinePass> passes;
  for (const std::int64_t begin : {0, 10, 20, 30})
    passes.push_back({{StageWork::Forward, begin / 10}, ns(begin), ns(begin + 5)});
  for (const std::int64_t begin : {40, 50, 60, 70})
    passes.push_back({{StageWork::Backward, begin / 10 - 4}, ns(begin), ns(begin + 5)});
  const Timeline made =
      on_pipeline_clock(toy.trace, toy.schedule, toy.timeline, passes, ns(75), ns(80));
  EXPECT_EQ(made.runs[0].begin, ns(0));
  EXPECT_EQ(made.runs[0].end, ns(15));  // over the wait between two passes
  EXPECT_EQ(made.runs[1].begin, ns(20));
  EXPECT_EQ(made.runs[2].begin, ns(40));
  EXPECT_EQ(made.runs[5].end, ns(75));
}

TEST(PipelineTimeline, WithoutPassesStaysAsItIs) {
  const Toy toy;
  const Timeline made =
      on_pipeline_clock(toy.trace, toy.schedule, toy.timeline, {}, ns(80), ns(85));
  EXPECT_EQ(made.duration, toy.timeline.duration);
  EXPECT_EQ(made.runs[3].begin, toy.timeline.runs[3].begin);
}

struct Case {
  const char* schedule;
  std::int64_t stages, micro_batches;
};

class OnAllStages : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    StepOptions step{.batch = 1, .sequence = 64};
    step.mesh[Axis::Pipeline] = GetParam().stages;
    step.accumulate.count = GetParam().micro_batches;
    step.schedule = parse_schedule(GetParam().schedule);
    const auto traces = rank_traces(find_model("gpt2"), step);
    all_ = evaluate_all_ranks(traces, parse_strategy("vanilla"), find_device("a100-80gb"),
                              {Bytes{std::int64_t{1} << 40}});
    ASSERT_EQ(all_.classes.size(), static_cast<std::size_t>(GetParam().stages));
    for (std::size_t s = 0; s < all_.classes.size(); ++s)
      moved_.push_back(on_pipeline_clock(*all_.classes[s].planned.trace, all_.classes[s].schedule,
                                         all_.classes[s].timeline, all_.pipeline.passes[s],
                                         all_.pipeline.total, all_.classes[s].report.step));
  }
  RankEvaluations all_;
  std::vector<Timeline> moved_;
};

TEST_P(OnAllStages, WhatHappensAndInWhichOrderIsAsItWas) {
  for (std::size_t s = 0; s < moved_.size(); ++s) {
    const Timeline &before = all_.classes[s].timeline, &now = moved_[s];
    const Schedule& schedule = all_.classes[s].schedule;
    const Nanoseconds step = all_.classes[s].report.step;
    if (std::string_view(GetParam().schedule).starts_with("zb"))
      EXPECT_GE(now.duration, step);  // other stages take up the next step before
    else
      EXPECT_EQ(now.duration, step);
    ASSERT_EQ(now.runs.size(), before.runs.size());
    for (std::size_t i = 0; i < now.runs.size(); ++i) {
      EXPECT_EQ(now.runs[i].step, before.runs[i].step);
      EXPECT_LE(now.runs[i].begin, now.runs[i].end);
      EXPECT_LE(now.runs[i].end, now.duration);
    }
    EXPECT_TRUE(std::ranges::is_sorted(now.memory, {}, &MemoryEvent::time));
    EXPECT_EQ(peak(schedule, now).bytes, peak(schedule, before).bytes);
    EXPECT_EQ(peak(schedule, now).event, peak(schedule, before).event);
  }
}

// Each pass is where the pipeline has it: the runs in it take as long as they did, but for what
// the pipeline's equal passes differ from the stage's own.
TEST_P(OnAllStages, RunsLieInThePassesOfThePipeline) {
  for (std::size_t s = 0; s < moved_.size(); ++s) {
    const auto& passes = all_.pipeline.passes[s];
    for (const TimedRun& run : moved_[s].runs) {
      const auto* step = std::get_if<tidemark::Run>(&all_.classes[s].schedule.steps[run.step]);
      if (!step || step->task == Task::Optimizer || index(run.stream) != 0) continue;
      const auto holds = [&](const PipelinePass& pass) {
        return pass.begin <= run.begin && run.end <= pass.end &&
               (step->task == Task::Forward) == (pass.action.work == StageWork::Forward) &&
               (step->task == Task::WeightGradient) <= (pass.action.work == StageWork::Weights);
      };
      EXPECT_TRUE(std::ranges::any_of(passes, holds))
          << s << ": " << run.begin.count() << " to " << run.end.count();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, OnAllStages,
                         testing::Values(Case{"1f1b", 4, 6}, Case{"gpipe", 3, 4},
                                         Case{"1f1b", 2, 1}, Case{"interleaved:v=2", 2, 4},
                                         Case{"zb-h1", 4, 6}, Case{"zb-v", 2, 4}));

}  // namespace
}  // namespace tidemark::pipeline_timeline_test
