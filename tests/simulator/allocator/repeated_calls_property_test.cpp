// Rounds that are not done again change nothing of what the allocator says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "simulator/allocator/repeated_calls.h"
#include "tests/simulator/dice.h"

namespace tidemark::allocator::repeated_calls_property_test {
namespace {

using namespace literals;
using Kind = AllocatorCall::Kind;

/// What a round does, over and over: allocates, and frees what it or an earlier round has.
struct Pattern {
  struct Lifetime {
    Bytes size;
    std::uint32_t stream;
    std::size_t rounds;  ///< that it lasts; freed behind the allocation of the same place
    bool is_shared;      ///< with another stream when it is freed
  };
  std::vector<Lifetime> lifetimes;
  std::size_t ahead = 0;  ///< the most rounds that any of them lasts
};

Pattern random_pattern(Dice& dice) {
  Pattern pattern;
  const bool has_streams = dice.one_in(3);
  for (std::size_t i = 2 + dice.below(20); i-- > 0;) {
    constexpr std::array<std::uint64_t, 3> most{64 << 10, 3 << 20, 90 << 20};
    const Bytes size{static_cast<std::int64_t>(1 + dice.below(most[dice.below(3)]))};
    pattern.lifetimes.push_back({size, has_streams && dice.one_in(2) ? 1u : 0u, dice.below(4),
                                 has_streams && dice.one_in(3)});
    pattern.ahead = std::max(pattern.ahead, pattern.lifetimes.back().rounds);
  }
  return pattern;
}

// Some that stay to the end of the step, then rounds, of which the last leave what they lack. The
// first step makes two, one before its rounds and one behind them.
AllocatorCalls calls_of_rounds(const Pattern& pattern, std::size_t rounds) {
  AllocatorCalls calls;
  calls.streams = 2;
  const auto allocate = [&](std::vector<AllocatorCall>& list, Bytes size, std::uint32_t stream) {
    const auto slot = static_cast<std::uint32_t>(calls.slots++);
    list.push_back({size, slot, static_cast<StreamId>(stream), Kind::Allocate});
    return slot;
  };
  allocate(calls.before, 300_MiB, 0), allocate(calls.before, 5_KiB, 0);
  allocate(calls.before, 9_MiB, 0), allocate(calls.before, 700_KiB, 0);
  const std::uint32_t held = allocate(calls.step, 7_MiB, 0);
  std::vector<std::deque<std::uint32_t>> alive(pattern.lifetimes.size());
  const auto free_oldest = [&](std::size_t i) {
    const auto& [size, stream, lasts, is_shared] = pattern.lifetimes[i];
    const std::uint32_t slot = alive[i].front();
    alive[i].pop_front();
    if (is_shared)
      calls.step.push_back({{}, slot, static_cast<StreamId>(1 - stream), Kind::RecordStream});
    calls.step.push_back({{}, slot, static_cast<StreamId>(stream), Kind::Free});
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < pattern.lifetimes.size(); ++i) {
      alive[i].push_back(
          allocate(calls.step, pattern.lifetimes[i].size, pattern.lifetimes[i].stream));
      if (alive[i].size() > pattern.lifetimes[i].rounds) free_oldest(i);
    }
    calls.step.push_back({.kind = Kind::CompleteEvents});
  }
  for (std::size_t i = 0; i < alive.size(); ++i)
    while (!alive[i].empty()) free_oldest(i);
  calls.work = calls.step.size();
  calls.made_at = {1, calls.work};
  calls.step.push_back({{}, held, StreamId::Compute, Kind::Free});
  calls.step.push_back({.kind = Kind::CompleteEvents});
  return calls;
}

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
