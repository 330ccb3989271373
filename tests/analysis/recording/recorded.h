// Recordings of small steps, for the tests of what reads them.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "analysis/recording/predicted_recording.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/traces/small_trace.h"

namespace tidemark {

inline Recording recorded(const Trace& trace, std::string_view strategy) {
  const Device device = toy_device();
  const Evaluation result = evaluate(std::make_shared<const Trace>(trace), parse_strategy(strategy),
                                     device, {.capacity = Bytes{std::int64_t{1} << 40}});
  return recording_of(result, device);
}

inline void expect_equal(const Recording& a, const Recording& b) {
  EXPECT_EQ(title(a), title(b));
  EXPECT_EQ(*a.trace, *b.trace);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.planned, b.planned);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.decisions, b.decisions);
  EXPECT_EQ(a.schedule.buffers, b.schedule.buffers);
  EXPECT_EQ(a.schedule.steps.size(), b.schedule.steps.size());
  EXPECT_EQ(a.timeline.baseline, b.timeline.baseline);
  EXPECT_EQ(a.timeline.duration, b.timeline.duration);
  EXPECT_EQ(a.timeline.overlap, b.timeline.overlap);
  ASSERT_EQ(a.timeline.runs.size(), b.timeline.runs.size());
  for (std::size_t i = 0; i < a.timeline.runs.size(); ++i) {
    const TimedRun &left = a.timeline.runs[i], &right = b.timeline.runs[i];
    EXPECT_TRUE(left.step == right.step && left.stream == right.stream &&
                left.begin == right.begin && left.end == right.end)
        << "run " << i;
    const auto *x = std::get_if<Run>(&a.schedule.steps[left.step]),
               *y = std::get_if<Run>(&b.schedule.steps[right.step]);
    ASSERT_EQ(x == nullptr, y == nullptr);
    if (!x) continue;
    EXPECT_TRUE(x->task == y->task && x->op == y->op) << "run " << i;
    EXPECT_TRUE(std::ranges::equal(a.schedule.reads(*x), b.schedule.reads(*y))) << "run " << i;
    EXPECT_TRUE(std::ranges::equal(a.schedule.writes(*x), b.schedule.writes(*y))) << "run " << i;
  }
  ASSERT_EQ(a.timeline.memory.size(), b.timeline.memory.size());
  for (std::size_t i = 0; i < a.timeline.memory.size(); ++i) {
    const MemoryEvent &left = a.timeline.memory[i], &right = b.timeline.memory[i];
    EXPECT_TRUE(left.time == right.time && left.buffer == right.buffer &&
                left.appears == right.appears)
        << "event " << i;
  }
}

}  // namespace tidemark
