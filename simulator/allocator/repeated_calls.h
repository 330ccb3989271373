// The calls of a step that does the same again and again, from one that does it few times.
#pragma once

#include <optional>

#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/allocator_replay.h"

namespace tidemark::allocator {

/// A step is head, some rounds, tail. What is listed has one round, and its slots count what is
/// allocated: `before`, then all of the step.
struct RepeatedCalls {
  std::vector<AllocatorCall> before, head, round, tail;
  std::vector<std::size_t>
      made_at;  ///< as of AllocatorCalls, in head or tail of a step of one round
  std::vector<bool> is_about_head;  ///< by call of the tail: however many rounds lie between
  std::size_t work = 0;             ///< calls of the tail up to the step's last run
  std::size_t round_begin = 0;      ///< the first slot of the round
  std::size_t allocations = 0;      ///< of a round: so much higher are the slots of the next
  std::int64_t rounds = 1;
  std::size_t streams = 1;
};

/// The last of a step's rounds, wherever in it rounds are said to begin.
struct LastRound {
  std::size_t begin = 0, size = 0;  ///< in the step's calls
};

/// Those of a step that has `rounds` more. Nothing if the step does not do the same in two rounds,
/// one after the other; the later of them ends where the last round that is said ceases to be like
/// the one before it.
std::optional<RepeatedCalls> repeated_calls(const AllocatorCalls& calls, const LastRound& last,
                                            std::int64_t rounds);

/// As of all calls in a row. Rounds after which everything lies where it lay after an earlier one
/// are not done again.
AllocatorResult replay_allocator(const RepeatedCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity);

}  // namespace tidemark::allocator
