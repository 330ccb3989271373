// Example: what is freed counts back from the last allocation, so a round looks like the next.
//   a b | -a c -b | d -c e -d | f -e g -f | -g        (+ allocates, − frees)
// The first call that is not what stands a round before ends the rounds. What a further round would
// free is, behind more of them, what they have made; all else there is what it was.
#include "simulator/allocator/repeated_calls.h"

#include <algorithm>
#include <span>

namespace tidemark::allocator {
namespace {

using Kind = AllocatorCall::Kind;

struct Listed {
  std::vector<AllocatorCall> calls;
  std::size_t slots = 0;
};

// Of the step, with slots that count allocations, those before it included. Nothing if it frees
// what was there before.
std::optional<Listed> listed(const AllocatorCalls& all) {
  constexpr std::uint32_t nothing = UINT32_MAX;
  std::vector<std::uint32_t> slot_of(all.slots, nothing);
  Listed list{all.step, all.before.size()};
  for (AllocatorCall& call : list.calls) {
    if (call.kind == Kind::CompleteEvents) continue;
    if (call.kind == Kind::Allocate) slot_of[call.slot] = static_cast<std::uint32_t>(list.slots++);
    if (slot_of[call.slot] == nothing) return std::nullopt;
    call.slot = slot_of[call.slot];
  }
  return list;
}

bool is_same(AllocatorCall a, const AllocatorCall& b, std::size_t shift) {
  if (a.kind != Kind::CompleteEvents) a.slot += static_cast<std::uint32_t>(shift);
  return a == b;
}

/// Calls that are the same as those before them.
struct Round {
  std::size_t begin, size;
  std::size_t slots;  ///< by so much they rise in one
};

std::optional<Round> round_before(const Listed& list, const LastRound& last) {
  const auto& calls = list.calls;
  if (last.size == 0 || last.begin < last.size || last.begin > calls.size()) return std::nullopt;
  const auto slots = static_cast<std::size_t>(
      std::ranges::count(std::span(calls).subspan(last.begin - last.size, last.size),
                         Kind::Allocate, &AllocatorCall::kind));
  const auto is_repeated = [&](std::size_t i) {
    return is_same(calls[i - last.size], calls[i], slots);
  };
  std::size_t end = last.begin;
  while (end < calls.size() && is_repeated(end)) ++end;
  if (end < 2 * last.size) return std::nullopt;
  const std::size_t begin = end - last.size;
  for (std::size_t i = begin; i < last.begin; ++i)
    if (!is_repeated(i)) return std::nullopt;
  return Round{begin, last.size, slots};
}

// By place among a round's allocations: the slot that the round frees. Nothing if it leaves any.
std::optional<std::vector<std::uint32_t>> freed_in(std::span<const AllocatorCall> round,
                                                   std::size_t slots) {
  constexpr std::uint32_t nothing = UINT32_MAX;
  std::vector<std::uint32_t> freed(slots, nothing);
  for (const AllocatorCall& call : round)
    if (call.kind == Kind::Free) freed[call.slot % slots] = call.slot;
  if (std::ranges::find(freed, nothing) != freed.end()) return std::nullopt;
  return freed;
}

// By call of the tail: is it about a slot that no further round would free?
std::vector<bool> are_about_head(std::span<const AllocatorCall> tail,
                                 std::span<const std::uint32_t> freed) {
  std::vector<bool> are;
  are.reserve(tail.size());
  for (const AllocatorCall& call : tail)
    are.push_back(call.kind == Kind::CompleteEvents || freed.empty() ||
                  call.slot <= freed[call.slot % freed.size()]);
  return are;
}

}  // namespace

std::optional<RepeatedCalls> repeated_calls(const AllocatorCalls& calls, const LastRound& last,
                                            std::int64_t rounds) {
  const std::optional<Listed> list = listed(calls);
  const std::optional<Round> round = list ? round_before(*list, last) : std::nullopt;
  if (!round) return std::nullopt;
  const std::size_t end = round->begin + round->size;
  if (calls.work < end) return std::nullopt;
  if (std::ranges::any_of(calls.made_at, [&](std::size_t at) {  // by one round, and not by others
        return at > round->begin && at < end;
      }))
    return std::nullopt;
  const std::span all(list->calls);
  const auto freed = freed_in(all.subspan(round->begin, round->size), round->slots);
  if (!freed) return std::nullopt;
  RepeatedCalls result;
  result.before = calls.before;
  for (std::uint32_t i = 0; i < result.before.size(); ++i) result.before[i].slot = i;
  result.head.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(round->begin));
  const auto behind = all.begin() + static_cast<std::ptrdiff_t>(end);
  result.round.assign(behind - static_cast<std::ptrdiff_t>(round->size), behind);
  result.tail.assign(behind, all.end());
  result.is_about_head = are_about_head(all.subspan(end), *freed);
  result.made_at = calls.made_at;
  result.work = calls.work - end;
  const auto allocations = std::ranges::count(result.head, Kind::Allocate, &AllocatorCall::kind);
  result.round_begin = result.before.size() + static_cast<std::size_t>(allocations);
  result.allocations = round->slots;
  result.rounds = 1 + rounds;
  result.streams = calls.streams;
  return result;
}

}  // namespace tidemark::allocator
