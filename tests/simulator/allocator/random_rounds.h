// Random steps that do the same again and again.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "simulator/allocator/repeated_calls.h"
#include "tests/simulator/dice.h"

namespace tidemark::allocator {

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

inline Pattern random_pattern(Dice& dice) {
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
inline AllocatorCalls calls_of_rounds(const Pattern& pattern, std::size_t rounds) {
  using namespace literals;
  using Kind = AllocatorCall::Kind;
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

// Of calls_of_rounds(), of so many that each place has freed something in the one before the last.
inline LastRound last_round(const Pattern& pattern, const AllocatorCalls& calls) {
  LastRound last{calls.work, 1};
  for (const Pattern::Lifetime& of : pattern.lifetimes) {
    const std::size_t freeing = of.is_shared ? 2 : 1;
    last.size += 1 + freeing;
    last.begin -= of.rounds * freeing;
  }
  last.begin -= last.size;
  return last;
}

}  // namespace tidemark::allocator
