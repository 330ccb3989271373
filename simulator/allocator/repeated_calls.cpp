// Example: what is freed counts back from the last allocation, so a round looks like the next.
//   few    a b | -a c -b | d -c -d                     (+ allocates, − frees)
//   more   a b | -a c -b | d -c e -d | f -e -f
// The first call in which they differ ends the rounds of `few`; `more` has one more from there on.
#include "simulator/allocator/repeated_calls.h"

#include <algorithm>
#include <span>
#include <utility>

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

/// The round that is in `b` and not in `a`: its calls, and by how much slots rise in one.
struct Added {
  std::size_t begin, size, slots;
};

// Nothing if it is not the same as what is before it.
std::optional<Added> round_added(const Listed& a, const Listed& b) {
  if (a.calls.size() >= b.calls.size() || a.slots > b.slots) return std::nullopt;
  const auto begin = std::ranges::mismatch(a.calls, b.calls).in1 - a.calls.begin();
  const Added added{static_cast<std::size_t>(begin), b.calls.size() - a.calls.size(),
                    b.slots - a.slots};
  if (added.begin < added.size) return std::nullopt;
  for (std::size_t i = added.begin; i < added.begin + added.size; ++i)
    if (!is_same(b.calls[i - added.size], b.calls[i], added.slots)) return std::nullopt;
  return added;
}

// By call behind the round: is it about the same slot in both? Nothing if neither that nor about
// one a round later.
std::optional<std::vector<bool>> are_about_head(const Listed& a, const Listed& b,
                                                const Added& added) {
  std::vector<bool> are;
  for (std::size_t i = added.begin; i < a.calls.size(); ++i) {
    const AllocatorCall& call = b.calls[i + added.size];
    are.push_back(is_same(a.calls[i], call, 0));
    if (!are.back() && !is_same(a.calls[i], call, added.slots)) return std::nullopt;
  }
  return are;
}

}  // namespace

std::optional<RepeatedCalls> repeated_calls(const AllocatorCalls& few, const AllocatorCalls& more,
                                            std::int64_t rounds) {
  if (few.before.size() != more.before.size() || few.streams != more.streams) return std::nullopt;
  const std::optional<Listed> a = listed(few), b = listed(more);
  const std::optional<Added> added = a && b ? round_added(*a, *b) : std::nullopt;
  if (!added || more.work < added->begin + added->size) return std::nullopt;
  if (std::ranges::any_of(more.made_at, [&](std::size_t at) {  // by one round, and not by others
        return at > added->begin && at < added->begin + added->size;
      }))
    return std::nullopt;
  auto are = are_about_head(*a, *b, *added);
  if (!are) return std::nullopt;
  RepeatedCalls result;
  result.before = more.before;
  for (std::uint32_t i = 0; i < result.before.size(); ++i) result.before[i].slot = i;
  const auto begin = b->calls.begin() + static_cast<std::ptrdiff_t>(added->begin);
  const auto end = begin + static_cast<std::ptrdiff_t>(added->size);
  result.head.assign(b->calls.begin(), begin);
  result.round.assign(begin, end);
  result.tail.assign(end, b->calls.end());
  result.is_about_head = std::move(*are);
  result.made_at = more.made_at;
  result.work = more.work - added->begin - added->size;
  const auto allocations = std::ranges::count(result.head, Kind::Allocate, &AllocatorCall::kind);
  result.round_begin = result.before.size() + static_cast<std::size_t>(allocations);
  result.allocations = added->slots;
  result.rounds = 1 + rounds;
  result.streams = more.streams;
  return result;
}

}  // namespace tidemark::allocator
