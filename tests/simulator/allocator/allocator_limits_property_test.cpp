// No replay allocates more, and with so much memory none is out of it.
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_limits.h"
#include "tests/simulator/allocator/random_rounds.h"

namespace tidemark::allocator::allocator_limits_property_test {
namespace {

using namespace literals;

void expect_limited(const AllocatorCalls& calls, const AllocatorLimits& limits) {
  EXPECT_LE(replay_allocator(calls, {}, 500_GiB).allocated_peak, limits.allocated);
  EXPECT_FALSE(replay_allocator(calls, {}, limits.capacity).out_of_memory);
}

TEST(AllocatorLimits, AreNeverExceeded) {
  constexpr std::uint64_t seed = 23;
  Dice dice(seed);
  int tight = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << i);
    const Pattern pattern = random_pattern(dice);
    const std::size_t few = pattern.ahead + 2, more = dice.below(60);
    const AllocatorCalls all = calls_of_rounds(pattern, few + more);
    const AllocatorCalls some = calls_of_rounds(pattern, few);
    const auto repeated =
        repeated_calls(some, last_round(pattern, some), static_cast<std::int64_t>(more));
    ASSERT_TRUE(repeated);
    const auto limits = limits_of(all, {}), of_rounds = limits_of(*repeated, {});
    ASSERT_TRUE(limits && of_rounds);
    EXPECT_EQ(limits->allocated, of_rounds->allocated);
    EXPECT_EQ(limits->capacity, of_rounds->capacity);
    expect_limited(all, *limits);
    const Bytes allocated = replay_allocator(all, {}, 500_GiB).allocated_peak;
    tight += 10 * limits->allocated.count < 11 * allocated.count ? 1 : 0;
  }
  EXPECT_GT(tight, 100);
}

// Three large blocks of 30, 7 and 3 MiB: the third lies in what is left of the second's segment.
TEST(AllocatorLimits, CountASegmentForEachBlock) {
  AllocatorCalls calls;
  calls.before = {{30_MiB, 0}};
  calls.step = {{7_MiB, 1}, {3_MiB, 2}};
  for (const std::uint32_t slot : {1u, 2u})
    calls.step.push_back({{}, slot, StreamId::Compute, AllocatorCall::Kind::Free});
  calls.work = 4, calls.slots = 3;
  const auto limits = limits_of(calls, {});
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->allocated, 31_MiB + 8_MiB + 4_MiB);
  EXPECT_EQ(limits->capacity,
            30_MiB + 20_MiB + 20_MiB + 20_MiB);  // two in use, and one that is asked for
}

// Pages of expandable segments, and blocks that are never split, follow other rules.
TEST(AllocatorLimits, AreOfUsualSettingsAndOfStepsThatEndAsTheyBegan) {
  AllocatorCalls calls;
  calls.step = {{7_MiB, 0}, {{}, 0, StreamId::Compute, AllocatorCall::Kind::Free}};
  calls.slots = 1;
  EXPECT_TRUE(limits_of(calls, {}));
  EXPECT_FALSE(limits_of(calls, expandable({})));
  EXPECT_FALSE(limits_of(calls, {.max_split_size = 32_MiB}));
  calls.step.pop_back();
  EXPECT_FALSE(limits_of(calls, {}));
}

}  // namespace
}  // namespace tidemark::allocator::allocator_limits_property_test
