// When a buffer is there and who uses it, on a recording that fits in the head.
#include "gui/indexes/buffer_index.h"

#include <gtest/gtest.h>

namespace tidemark::gui::buffer_index_test {
namespace {

constexpr BufferId weight{0}, early{1}, late{2}, unused{3};

/// weight is there before; events: early, late, early gone. Runs, in host order:
///   0 at 10, stream 0: reads weight, writes early      2 at 20, stream 0: copies late out
///   1 at 40, stream 1: reads early, writes late        3 at 30, stream 1: reads weight
Recording recorded() {
  Recording r;
  r.schedule.streams = 2;
  r.schedule.buffers = {
      {.size = {300}, .persistent = true}, {.size = {500}}, {.size = {300}}, {.size = {400}}};
  r.schedule.operands = {weight, early, early, late, weight};
  const StreamId first{0}, second{1};
  r.schedule.steps = {Run{Task::Forward, first, OpId{0}, 0, 1, 1},
                      Run{Task::Forward, second, OpId{1}, 2, 1, 1}, CopyOut{late, first},
                      Run{Task::Backward, second, OpId{2}, 4, 1, 0}, CopyIn{late, first}};
  const auto ns = [](std::int64_t count) { return Nanoseconds{count}; };
  r.timeline.runs = {{0, first, ns(10), ns(15)},
                     {1, second, ns(40), ns(45)},
                     {2, first, ns(20), ns(25)},
                     {3, second, ns(30), ns(35)}};
  r.timeline.memory = {{ns(10), early, true}, {ns(20), late, true}, {ns(45), early, false}};
  return r;
}

std::vector<std::uint32_t> list(std::span<const std::uint32_t> runs) {
  return {runs.begin(), runs.end()};
}

TEST(BufferIndex, KnowsInWhichStatesABufferIsAlive) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  EXPECT_EQ(index.first_state(weight), 0u);
  EXPECT_EQ(index.last_state(weight), 4u);  // to the end: states are 0 to 3
  EXPECT_EQ(index.first_state(early), 1u);
  EXPECT_EQ(index.last_state(early), 3u);
  EXPECT_FALSE(index.is_alive(early, 0));
  EXPECT_TRUE(index.is_alive(early, 1));
  EXPECT_TRUE(index.is_alive(early, 2));
  EXPECT_FALSE(index.is_alive(early, 3));
  EXPECT_TRUE(index.is_alive(late, 3));
}

TEST(BufferIndex, KnowsABufferThatNeverAppears) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  for (StateId state = 0; state < 4; ++state) EXPECT_FALSE(index.is_alive(unused, state));
  EXPECT_TRUE(index.runs_of(unused).empty());
  EXPECT_EQ(index.first_writer(unused), std::nullopt);
  EXPECT_EQ(index.last_reader(unused), std::nullopt);
}

TEST(BufferIndex, SortsBySizeThenById) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  const auto sorted = index.by_size();
  EXPECT_EQ((std::vector<BufferId>{sorted.begin(), sorted.end()}),
            (std::vector<BufferId>{early, unused, weight, late}));
}

// Few sizes are counted, more than 65,536 are sorted: both as a sort that keeps equal ones in
// order.
TEST(BufferIndex, SortsFewSizesAndManyAlike) {
  for (const std::int64_t sizes : {1, 7, 1'000, 65'536, 65'537, 100'000}) {
    Schedule schedule;
    for (std::int64_t i = 0; i < 150'000; ++i)
      schedule.buffers.push_back({.size = {i * 7'919 % sizes}});
    std::vector<BufferId> expected;
    for (std::size_t i = 0; i < schedule.buffers.size(); ++i)
      expected.push_back(static_cast<BufferId>(i));
    std::ranges::stable_sort(expected, [&](BufferId a, BufferId b) {
      return schedule[a].size.count > schedule[b].size.count;
    });
    EXPECT_EQ(largest_first(schedule), expected) << sizes;
  }
}

TEST(BufferIndex, ListsTheRunsThatUseABuffer) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  EXPECT_EQ(list(index.runs_of(weight)), (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(list(index.runs_of(early)), (std::vector<std::uint32_t>{0, 1}));
  // In the order in which they begin.
  EXPECT_EQ(list(index.runs_of(late)), (std::vector<std::uint32_t>{2, 1}));
}

TEST(BufferIndex, TellsWritersFromReaders) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  EXPECT_EQ(index.first_writer(early), RunId{0});
  EXPECT_EQ(index.last_reader(early), RunId{1});
  EXPECT_EQ(index.first_writer(weight), std::nullopt);
  EXPECT_EQ(index.last_reader(weight), RunId{3});
  EXPECT_EQ(index.first_writer(late), RunId{1});
  EXPECT_EQ(index.last_reader(late), RunId{2});  // a copy to the host reads
}

// Run 3 begins before run 1, behind which the host has issued it.
TEST(BufferIndex, FindsTheNextUseByTime) {
  const Recording recording = recorded();
  const BufferIndex index(recording);
  EXPECT_EQ(index.next_use(weight, Nanoseconds{0}), RunId{0});
  EXPECT_EQ(index.next_use(weight, Nanoseconds{10}), RunId{0});
  EXPECT_EQ(index.next_use(weight, Nanoseconds{11}), RunId{3});
  EXPECT_EQ(index.next_use(weight, Nanoseconds{31}), std::nullopt);
  EXPECT_EQ(index.next_use(late, Nanoseconds{0}), RunId{2});
  EXPECT_EQ(index.next_use(late, Nanoseconds{21}), RunId{1});
}

TEST(BufferIndex, ACopyHasOneBuffer) {
  const Schedule schedule = recorded().schedule;
  const Step &out = schedule.steps[2], &in = schedule.steps[4];
  ASSERT_EQ(reads_of(schedule, out).size(), 1u);
  EXPECT_EQ(reads_of(schedule, out)[0], late);
  EXPECT_TRUE(writes_of(schedule, out).empty());
  EXPECT_TRUE(reads_of(schedule, in).empty());
  ASSERT_EQ(writes_of(schedule, in).size(), 1u);
  EXPECT_EQ(writes_of(schedule, in)[0], late);
  EXPECT_TRUE(reads_of(schedule, Free{late, StreamId{0}}).empty());
}

}  // namespace
}  // namespace tidemark::gui::buffer_index_test
