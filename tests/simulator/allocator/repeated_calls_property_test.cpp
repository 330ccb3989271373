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
    const std::size_t few = 2 * pattern.ahead + 2, more = dice.below(150);
    const auto repeated =
        repeated_calls(calls_of_rounds(pattern, few), calls_of_rounds(pattern, few + 1),
                       static_cast<std::int64_t>(more));
    ASSERT_TRUE(repeated);
    const AllocatorCalls all = calls_of_rounds(pattern, few + 1 + more);
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
  const AllocatorCalls few = calls_of_rounds(pattern, 9), more = calls_of_rounds(pattern, 10);
  ASSERT_TRUE(repeated_calls(few, more, 1));
  EXPECT_FALSE(repeated_calls(more, few, 1));
  EXPECT_FALSE(repeated_calls(few, few, 1));
  const auto last_allocation = [](AllocatorCalls& calls) -> AllocatorCall& {
    return *std::ranges::find(calls.step.rbegin(), calls.step.rend(), Kind::Allocate,
                              &AllocatorCall::kind);
  };
  AllocatorCalls larger = more;
  last_allocation(larger).size += 512_B;
  EXPECT_FALSE(repeated_calls(few, larger, 1));
  std::size_t inside = 0;  // of a round, which another one would make, too
  for (AllocatorCalls late = more; late.made_at[0] < late.work; ++late.made_at[0])
    inside += repeated_calls(few, late, 1) ? 0 : 1;
  EXPECT_EQ(inside, more.step.size() - few.step.size() - 1);
  AllocatorCalls elsewhere = more;
  last_allocation(elsewhere).stream = static_cast<StreamId>(1);
  EXPECT_FALSE(repeated_calls(few, elsewhere, 1));
}

// Two rounds are needed until everything lies where it lay: then there is nothing left to do.
TEST(RepeatedCalls, OfABillionRoundsTakeNoTime) {
  const Pattern pattern{{{40_MiB, 0, 1, false}, {3_MiB, 0, 0, false}}, 1};
  const auto repeated =
      repeated_calls(calls_of_rounds(pattern, 4), calls_of_rounds(pattern, 5), 1'000'000'000);
  ASSERT_TRUE(repeated);
  EXPECT_EQ(replay_allocator(*repeated, {}, 100_GiB),
            replay_allocator(calls_of_rounds(pattern, 20), {}, 100_GiB));
}

}  // namespace
}  // namespace tidemark::allocator::repeated_calls_property_test
