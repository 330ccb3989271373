// Recorded runs, waits and buffers of two streams become a timeline that moves as its streams do.
#include "profiler/measured_timeline.h"

#include <gtest/gtest.h>

#include "tests/simulator/hand_made.h"

namespace tidemark::profiler::measured_timeline_test {
namespace {

// Two buffers, a run on each of two streams:
//   stream 0   |--- run 0 (10 to 30) ---|
//   stream 1            |--- run 1 (20 to 50), recomputes ---|
struct TwoStreams {
  Schedule schedule;
  std::vector<Ran> ran;

  TwoStreams() {
    schedule.streams = 2;
    for (int i = 0; i < 2; ++i)
      schedule.buffers.push_back(
          {.size = Bytes{100 << i}, .tensor = TensorId{0}, .stream = static_cast<StreamId>(i)});
    schedule.operands = {BufferId{0}, BufferId{1}};
    schedule.steps = {
        Allocate{BufferId{0}},          Run{Task::Forward, StreamId{0}, OpId{0}, 0, 0, 1},
        Allocate{BufferId{1}},          Run{Task::Recompute, StreamId{1}, OpId{0}, 1, 0, 1},
        Free{BufferId{0}, StreamId{0}}, Free{BufferId{1}, StreamId{1}}};
    ran = {{1, 0, Nanoseconds{10}, Nanoseconds{30}}, {3, 1, Nanoseconds{20}, Nanoseconds{50}}};
  }
};

TEST(MeasuredTimeline, CountsBusyStreams) {
  const TwoStreams two;
  const Timeline timeline = measured_timeline(two.schedule, two.ran, Nanoseconds{5});
  EXPECT_EQ(timeline.duration.count(), 50);
  EXPECT_EQ(timeline.host.count(), 5);
  EXPECT_EQ(timeline.overlap.count(), 10);
  EXPECT_EQ(timeline.idle.count(), 10);
}

TEST(MeasuredTimeline, BuffersComeAndGoWithTheirStream) {
  const TwoStreams two;
  const Timeline timeline = measured_timeline(two.schedule, two.ran, Nanoseconds{5});
  ASSERT_EQ(timeline.memory.size(), 4u);
  EXPECT_EQ(timeline.memory[2].buffer, BufferId{0});
  EXPECT_EQ(timeline.memory[2].time.count(), 30);
  EXPECT_EQ(timeline.memory[3].buffer, BufferId{1});
  EXPECT_EQ(timeline.memory[3].time.count(), 50);
  EXPECT_EQ(peak(two.schedule, timeline).bytes, Bytes{300});
}

TEST(MeasuredTimeline, AStepOfSeveralCallsIsOneRun) {
  const TwoStreams two;
  const std::vector<Ran> ran = {{1, 0, Nanoseconds{10}, Nanoseconds{12}},
                                {3, 1, Nanoseconds{11}, Nanoseconds{13}},
                                {1, 0, Nanoseconds{14}, Nanoseconds{20}}};
  const Timeline timeline = measured_timeline(two.schedule, ran, {});
  ASSERT_EQ(timeline.runs.size(), 2u);
  EXPECT_EQ(timeline.runs[0].begin.count(), 10);
  EXPECT_EQ(timeline.runs[0].end.count(), 20);
}

TEST(MeasuredTimeline, WhatIsNoStepIsLeftOut) {
  const TwoStreams two;
  const std::vector<Ran> ran = {{0xffffffff, 0, Nanoseconds{1}, Nanoseconds{99}}};
  EXPECT_TRUE(measured_timeline(two.schedule, ran, {}).runs.empty());
}

// The second stream frees what it waited for: not before the event.
TEST(MeasuredTimeline, AWaitMovesAStreamOn) {
  TwoStreams two;
  two.schedule.events = 1;
  two.schedule.steps = {tidemark::Run{Task::Forward, StreamId{0}, OpId{0}, 0, 0, 1},
                        Record{EventId{0}, StreamId{0}}, Wait{EventId{0}, StreamId{1}},
                        Allocate{BufferId{1}}, Free{BufferId{1}, StreamId{1}}};
  const Timeline timeline =
      measured_timeline(two.schedule, {{0, 0, Nanoseconds{10}, Nanoseconds{30}}}, {});
  EXPECT_EQ(timeline.memory[0].time.count(), 30);
}

}  // namespace
}  // namespace tidemark::profiler::measured_timeline_test
