// Rounds that are not done again change nothing of what the allocator says.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/allocator/repeated_calls.h"
#include "tests/simulator/allocator/random_rounds.h"

namespace tidemark::allocator::repeated_calls_property_test {
namespace {

using namespace literals;
using Kind = AllocatorCall::Kind;

TEST(RepeatedCalls, AnswerAsAllCallsInARow) {
  constexpr std::uint64_t seed = 17;
  Dice dice(seed);
  int too_large = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << i);
    const Pattern pattern = random_pattern(dice);
    const std::size_t few = pattern.ahead + 2, more = dice.below(150);
    const AllocatorCalls some = calls_of_rounds(pattern, few);
    const auto repeated =
        repeated_calls(some, last_round(pattern, some), static_cast<std::int64_t>(more));
    ASSERT_TRUE(repeated);
    const AllocatorCalls all = calls_of_rounds(pattern, few + more);
    AllocatorSettings settings;
    settings.expandable_segments = dice.one_in(3);
    if (dice.one_in(3)) settings.max_split_size = 32_MiB;
    const Bytes reserved = replay_allocator(all, settings, 100_GiB).reserved_peak;
    for (const Bytes capacity :
         {100_GiB, reserved, Bytes{reserved.count - (2 << 20)}, Bytes{reserved.count * 9 / 10}}) {
      const AllocatorResult expected = replay_allocator(all, settings, capacity);
      EXPECT_EQ(replay_allocator(*repeated, settings, capacity), expected);
      too_large += expected.out_of_memory ? 1 : 0;
    }
  }
  EXPECT_GT(too_large, 200);
}

TEST(RepeatedCalls, AreRefusedWhereRoundsDiffer) {
  Dice dice(3);
  const Pattern pattern = random_pattern(dice);
  const AllocatorCalls calls = calls_of_rounds(pattern, 10);
  const LastRound last = last_round(pattern, calls);
  ASSERT_TRUE(repeated_calls(calls, last, 1));
  EXPECT_FALSE(repeated_calls(calls, {last.begin, last.size - 1}, 1));
  EXPECT_FALSE(repeated_calls(calls, {last.begin, 0}, 1));
  EXPECT_FALSE(repeated_calls(calls, {last.begin, last.begin + 1}, 1));
  const AllocatorCalls first = calls_of_rounds(pattern, pattern.ahead + 1);
  EXPECT_FALSE(repeated_calls(first, last_round(pattern, first), 1));
  // What the last round alone does otherwise is of what follows rounds.
  const auto last_allocation = [&](AllocatorCalls& of,
                                   std::size_t rounds_before) -> AllocatorCall& {
    std::size_t left = rounds_before * pattern.lifetimes.size();
    const auto is_it = [&](const AllocatorCall& call) {
      return call.kind == Kind::Allocate && left-- == 0;
    };
    return *std::find_if(of.step.rbegin(), of.step.rend(), is_it);
  };
  AllocatorCalls larger = calls;
  last_allocation(larger, 0).size += 512_B;
  EXPECT_TRUE(repeated_calls(larger, last, 1));
  last_allocation(larger, 1).size += 1024_B;
  EXPECT_FALSE(repeated_calls(larger, last, 1));
  std::size_t inside = 0;  // of a round, which another one would make, too
  for (AllocatorCalls late = calls; late.made_at[0] < late.work; ++late.made_at[0])
    inside += repeated_calls(late, last, 1) ? 0 : 1;
  EXPECT_EQ(inside, last.size - 1);
  AllocatorCalls elsewhere = calls;
  last_allocation(elsewhere, 1).stream = static_cast<StreamId>(1);
  EXPECT_FALSE(repeated_calls(elsewhere, last, 1));
}

// Of those there would be more behind more rounds.
TEST(RepeatedCalls, AreRefusedWhereARoundLeavesSomething) {
  AllocatorCalls calls;
  for (std::uint32_t round = 0; round < 4; ++round) calls.step.push_back({3_MiB, round});
  for (std::uint32_t round = 0; round < 4; ++round)
    calls.step.push_back({{}, round, StreamId::Compute, Kind::Free});
  calls.slots = 4, calls.work = calls.step.size();
  EXPECT_FALSE(repeated_calls(calls, {3, 1}, 1));
}

// Two rounds are needed until everything lies where it lay: then there is nothing left to do.
TEST(RepeatedCalls, OfABillionRoundsTakeNoTime) {
  const Pattern pattern{{{40_MiB, 0, 1, false}, {3_MiB, 0, 0, false}}, 1};
  const AllocatorCalls few = calls_of_rounds(pattern, 5);
  const auto repeated = repeated_calls(few, last_round(pattern, few), 1'000'000'000);
  ASSERT_TRUE(repeated);
  EXPECT_EQ(replay_allocator(*repeated, {}, 100_GiB),
            replay_allocator(calls_of_rounds(pattern, 20), {}, 100_GiB));
}

}  // namespace
}  // namespace tidemark::allocator::repeated_calls_property_test
