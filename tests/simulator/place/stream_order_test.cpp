// Streams record and wait for no more events than their reads, writes and frees need.
#include "simulator/place/stream_order.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark::stream_order_test {
namespace {

constexpr StreamId s0{0}, s1{1}, s2{2};
constexpr BufferId a{0}, b{1};

/// Steps as text: "r0@1" records event 0 on stream 1, "w0@1" waits for it there, "h0" on the host,
/// "f5@1" frees buffer 5 there, "x@1" is a run.
struct StreamOrderTest : testing::Test {
  Schedule schedule;

  StreamOrderTest() {
    schedule.streams = 3;
    schedule.buffers.resize(4);
  }

  StreamOrder order(bool synchronizes_host = false) { return {schedule, synchronizes_host}; }

  void run(StreamOrder& order, StreamId stream, const std::vector<BufferId>& reads,
           const std::vector<BufferId>& writes) {
    order.before_run(stream, reads, writes);
    schedule.steps.emplace_back(tidemark::Run{Task::Forward, stream, no_op, 0, 0, 0});
  }

  std::string steps() const {
    std::string text;
    const auto add = [&](char what, std::size_t which, std::string_view stream) {
      text += (text.empty() ? "" : " ");
      text += what + std::to_string(which);
      text += stream;
    };
    const auto at = [](StreamId stream) { return "@" + std::to_string(index(stream)); };
    for (const Step& step : schedule.steps)
      std::visit(
          Overload{[&](const Record& s) { add('r', index(s.event), at(s.stream)); },
                   [&](const Wait& s) { add('w', index(s.event), at(s.stream)); },
                   [&](const Synchronize& s) { add('h', index(s.event), ""); },
                   [&](const Free& s) { add('f', index(s.buffer), at(s.stream)); },
                   [&](const tidemark::Run& s) { add('x', 0, at(s.stream)); }, [](const auto&) {}},
          step);
    return text;
  }
};

TEST_F(StreamOrderTest, OneStreamNeedsNoEvents) {
  schedule.streams = 1;
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  run(order, s0, {a}, {b});
  order.free(a, s0);
  EXPECT_EQ(steps(), "x0@0 x0@0 f0@0");
}

TEST_F(StreamOrderTest, AReadWaitsForTheWrite) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  run(order, s1, {a}, {b});
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1");
}

TEST_F(StreamOrderTest, ASecondReadOfTheSameWriteWaitsNoMore) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  run(order, s1, {a}, {});
  run(order, s1, {a}, {});
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1 x0@1");
}

TEST_F(StreamOrderTest, TwoReadsDoNotWaitForEachOther) {
  StreamOrder order = this->order();
  run(order, s0, {a}, {});
  run(order, s1, {a}, {});
  EXPECT_EQ(steps(), "x0@0 x0@1");
}

TEST_F(StreamOrderTest, AWriteWaitsForReads) {
  StreamOrder order = this->order();
  run(order, s0, {a}, {});
  run(order, s1, {}, {a});
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1");
}

// Stream 2 waits for stream 1, which has waited for stream 0.
TEST_F(StreamOrderTest, WhatAStreamHasWaitedForIsWaitedFor) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  run(order, s1, {a}, {b});
  run(order, s2, {b}, {});
  run(order, s2, {a}, {});
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1 r1@1 w1@2 x0@2 x0@2");
}

// A mark made early serves those who need no more; later runs of that stream are not waited for.
TEST_F(StreamOrderTest, AMarkIsWaitedForInsteadOfWhatFollows) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  const StreamOrder::Point point = order.mark(s0);
  run(order, s0, {}, {b});
  order.follow(s1, point);
  run(order, s1, {a}, {});
  EXPECT_EQ(steps(), "x0@0 r0@0 x0@0 w0@1 x0@1");
}

TEST_F(StreamOrderTest, MarkingTwiceRecordsOnce) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  order.mark(s0), order.mark(s0);
  EXPECT_EQ(steps(), "x0@0 r0@0");
}

TEST_F(StreamOrderTest, AHostThatWaitsWaitsForAllStreams) {
  StreamOrder order = this->order(true);
  run(order, s0, {}, {a});
  run(order, s1, {a}, {});
  run(order, s2, {a}, {});
  EXPECT_EQ(steps(), "x0@0 r0@0 h0 x0@1 x0@2");
}

TEST_F(StreamOrderTest, AFreeWaitsUntilAStreamIsBehindAllUses) {
  StreamOrder order = this->order();
  run(order, s0, {}, {a});
  run(order, s1, {a}, {});
  order.free(a, s0);  // stream 1 may still read it
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1");
  order.follow(s0, order.mark(s1));
  EXPECT_EQ(steps(), "x0@0 r0@0 w0@1 x0@1 r1@1 w1@0 f0@0");
}

TEST_F(StreamOrderTest, JoinFreesWhatIsLeft) {
  StreamOrder order = this->order();
  run(order, s1, {}, {a});
  run(order, s2, {}, {b});
  order.free(a, s0), order.free(b, s0);
  order.join(s0);
  EXPECT_EQ(steps(), "x0@1 x0@2 r0@1 w0@0 f0@0 r1@2 w1@0 f1@0");
}

}  // namespace
}  // namespace tidemark::stream_order_test
