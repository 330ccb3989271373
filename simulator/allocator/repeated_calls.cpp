// Example: what is freed counts back from the last allocation, so a round looks like the next.
//   few    a b | -a c -b | d -c -d                     (+ allocates, − frees)
//   more   a b | -a c -b | d -c e -d | f -e -f
// The first call in which they differ ends the rounds of `few`; `more` has one more from there on.
#include "simulator/allocator/repeated_calls.h"

#include <algorithm>
#include <span>
#include <utility>

#include "simulator/allocator/call_player.h"

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
  result.work = more.work - added->begin - added->size;
  const auto allocations = std::ranges::count(result.head, Kind::Allocate, &AllocatorCall::kind);
  result.round_begin = result.before.size() + static_cast<std::size_t>(allocations);
  result.allocations = added->slots;
  result.rounds = 1 + rounds;
  result.streams = more.streams;
  return result;
}

namespace {

class RoundsReplay {
 public:
  RoundsReplay(const RepeatedCalls& calls, const AllocatorSettings& settings, Bytes capacity)
      : calls_(calls),
        player_(settings, capacity, calls.streams, calls.round_begin),
        allocator_(player_.allocator()) {}

  AllocatorResult run() {
    bool fits = play(calls_.before, 0);
    Bytes at_rest;
    for (int i = 0; fits && i < 2; ++i) {
      fits = play(calls_.head, 0) && play_rounds() && play_tail(0, calls_.work);
      at_rest = allocator_.stats().allocated;
      fits = fits && play_tail(calls_.work, calls_.tail.size());
    }
    return result_of(allocator_.stats(), at_rest, fits);
  }

 private:
  /// A block that is in use between two rounds.
  struct Place {
    std::int64_t slot;  ///< as it would be one round after the head
    std::int64_t address;
    Bytes size;
    bool operator==(const Place&) const = default;
  };

  bool play(std::span<const AllocatorCall> calls, std::size_t shift) {
    return std::ranges::all_of(
        calls, [&](const AllocatorCall& call) { return player_.play(call, call.slot + shift); });
  }

  bool play_rounds() {
    done_ = 0, in_use_ = calls_.round_begin;
    seen_.clear();
    std::int64_t left = calls_.rounds;
    for (bool is_searching = true; left > 0; --left) {
      if (!play_round()) return false;
      const std::int64_t cycle = is_searching ? rounds_since_this() : 0;
      if (cycle == 0) continue;
      left = 1 + (left - 1) % cycle;
      is_searching = false;
    }
    return true;
  }

  bool play_round() {
    const std::size_t shift = static_cast<std::size_t>(done_++) * calls_.allocations;
    player_.make_room(calls_.round_begin + shift + calls_.allocations);
    for (const AllocatorCall& call : calls_.round) {
      const std::size_t slot = call.slot + shift;
      if (!player_.play(call, slot)) return false;
      if (call.kind == Kind::Free) freed(slot);
    }
    return true;
  }

  bool play_tail(std::size_t begin, std::size_t end) {
    const std::size_t shift = static_cast<std::size_t>(done_ - 1) * calls_.allocations;
    player_.make_room(calls_.round_begin + shift + calls_.allocations + calls_.tail.size());
    for (std::size_t i = begin; i < end; ++i) {
      const AllocatorCall& call = calls_.tail[i];
      if (!player_.play(call, call.slot + (calls_.is_about_head[i] ? 0 : shift))) return false;
    }
    return true;
  }

  // What the head has allocated stays where it is until a round frees it.
  void freed(std::size_t slot) {
    if (slot < calls_.round_begin) seen_.clear();
  }

  // After so many rounds everything lies as it does now, or 0. Blocks in use say where free ones
  // are, as long as the device neither gives nor gets and no other stream holds any back.
  std::int64_t rounds_since_this() {
    const AllocatorStats& stats = allocator_.stats();
    const std::int64_t device_calls = stats.device_allocs + stats.device_frees;
    if (std::exchange(device_calls_, device_calls) != device_calls) seen_.clear();
    if (stats.active != stats.allocated) return 0;
    std::vector<Place> now = places();
    const auto same = std::ranges::find(seen_, now);
    if (same != seen_.end()) return seen_.end() - same;
    seen_.push_back(std::move(now));
    return 0;
  }

  std::vector<Place> places() {
    const std::size_t end =
        calls_.round_begin + static_cast<std::size_t>(done_) * calls_.allocations;
    const auto shift = static_cast<std::int64_t>(end - calls_.round_begin);
    while (in_use_ < end && player_[in_use_] == no_block) ++in_use_;
    std::vector<Place> all;
    for (std::size_t slot = in_use_; slot < end; ++slot)
      if (const BlockHandle block = player_[slot]; block != no_block)
        all.push_back({static_cast<std::int64_t>(slot) - shift, allocator_.address(block),
                       allocator_.size(block)});
    return all;
  }

  const RepeatedCalls& calls_;
  CallPlayer player_;
  const CachingAllocator& allocator_;
  std::int64_t done_ = 0;   ///< rounds of this step
  std::size_t in_use_ = 0;  ///< no slot of the rounds before it is
  std::int64_t device_calls_ = 0;
  std::vector<std::vector<Place>> seen_;  ///< behind each round since something else has changed
};

}  // namespace

AllocatorResult replay_allocator(const RepeatedCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity) {
  return RoundsReplay(calls, settings, capacity).run();
}

}  // namespace tidemark::allocator
