// Small and large blocks lie in segments of their own. Example, of ten rounds: after the fourth
// large blocks lie where they lay after the second, so that of the six that are left they need
// none; small ones, which wander on, play all six alone. While small ones play alone, nothing is
// seen that was not there before: large ones have gone through all that they do, and of small ones
// the same is allocated in every round, for none is larger than its request. What they ask the
// device for they would have asked for, too; but if it has nothing left, the cache that it takes
// back would lie elsewhere, and all is played together. Tested by
// tests/simulator/allocator/repeated_calls_property_test.cpp.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "simulator/allocator/call_player.h"
#include "simulator/allocator/repeated_calls.h"

namespace tidemark::allocator {
namespace {

using Kind = AllocatorCall::Kind;

class RoundsReplay {
 public:
  RoundsReplay(const RepeatedCalls& calls, const AllocatorSettings& settings, Bytes capacity,
               bool is_apart)
      : calls_(calls),
        player_(settings, capacity, calls.streams, calls.round_begin),
        allocator_(player_.allocator()),
        first_(calls.before, calls.made_at) {
    note_sizes(settings);
    if (is_apart) take_apart();
  }

  AllocatorResult run() {
    bool fits = play(first_.there());
    Bytes at_rest;
    for (int i = 0; fits && i < 2; ++i) {
      fits = play_head() && play_rounds() && play_tail(0, calls_.work);
      at_rest = allocator_.stats().allocated;
      fits = fits && play_tail(calls_.work, calls_.tail.size());
    }
    AllocatorResult result = result_of(allocator_.stats(), at_rest, fits);
    result.allocated_peak = std::max(result.allocated_peak, peak_);
    return result;
  }

  /// Otherwise what was left out would have changed something.
  bool is_true() const { return is_true_; }

 private:
  /// A block that is in use between two rounds.
  struct Place {
    std::int64_t slot;  ///< as it would be one round after the head
    std::int64_t address;
    Bytes size;
    bool operator==(const Place&) const = default;
  };

  /// Large blocks, small ones, or all.
  struct Group {
    std::vector<AllocatorCall> round;  ///< what it does alone
    std::int64_t left = 0, done = 0;   ///< rounds of this step
    bool is_searching = true;          ///< for a round after which it lies as it did before
    std::size_t in_use = 0;            ///< no slot of the rounds before it is
    std::vector<std::vector<Place>> seen = {};  ///< behind each round since something else changed
  };

  void note_sizes(const AllocatorSettings& settings) {
    for (const auto* some : {&calls_.before, &calls_.head, &calls_.round, &calls_.tail})
      for (const AllocatorCall& call : *some)
        if (call.kind == Kind::Allocate)
          is_small_.push_back(call.size.count > 0 &&
                              rounded_size(settings, call.size) <= largest_small_block);
  }

  void take_apart() {
    if (calls_.allocations == 0) return;
    is_apart_ = true;
    for (const AllocatorCall& call : calls_.round)
      for (std::size_t g = 0; g < groups_.size(); ++g)
        if (call.kind == Kind::CompleteEvents || group_of(call.slot) == g)
          groups_[g].round.push_back(call);
  }

  // Of what a round allocates, or one before it.
  std::size_t group_of(std::size_t slot) const {
    if (!is_apart_) return 0;
    const std::size_t each = calls_.allocations, first = calls_.round_begin;
    return is_small_[first + (slot + each - first % each) % each] ? 1 : 0;
  }

  bool play(std::span<const AllocatorCall> calls) {
    return std::ranges::all_of(
        calls, [&](const AllocatorCall& call) { return player_.play(call, call.slot); });
  }

  bool play_head() {
    for (std::size_t i = 0; i < calls_.head.size(); ++i)
      if (!play(first_.before(i)) || !player_.play(calls_.head[i], calls_.head[i].slot))
        return false;
    return play(first_.before(calls_.head.size()));
  }

  std::span<Group> groups() { return std::span(groups_).first(is_apart_ ? 2 : 1); }

  bool play_rounds() {
    done_ = 0;
    for (Group& group : groups()) {
      group.left = calls_.rounds, group.done = 0, group.is_searching = true;
      group.in_use = calls_.round_begin;
    }
    forget_seen();
    while (std::ranges::any_of(groups(), [](const Group& group) { return group.left > 0; })) {
      const bool is_whole =
          std::ranges::all_of(groups(), [](const Group& group) { return group.left > 0; });
      if (!(is_whole ? play_round(calls_.round) : play_alone())) return false;
      leave_out_cycles();
    }
    return true;
  }

  bool play_round(std::span<const AllocatorCall> round) {
    const std::size_t shift = static_cast<std::size_t>(done_++) * calls_.allocations;
    player_.make_room(calls_.round_begin + shift + calls_.allocations);
    for (const AllocatorCall& call : round) {
      const std::size_t slot = call.slot + shift;
      if (!player_.play(call, slot)) return false;
      // What the head has allocated stays where it is until a round frees it.
      if (call.kind == Kind::Free && slot < calls_.round_begin) forget_seen();
    }
    for (Group& group : groups())
      if (group.left > 0) --group.left, group.done = done_;
    return true;
  }

  bool play_alone() {
    const AllocatorStats before = allocator_.stats();
    peak_ = std::max(peak_, before.allocated_peak);
    const auto& group = groups_[groups_[0].left > 0 ? 0 : 1];
    const bool fits = play_round(group.round);
    const AllocatorStats& after = allocator_.stats();
    is_true_ = fits && after.retries == before.retries && after.device_frees == before.device_frees;
    player_.forget_peak();
    return is_true_;
  }

  // Of the rounds that are left as many as lead to where all of them would. Blocks in use say where
  // free ones are, as long as the device neither gives nor gets and no other stream holds any back.
  void leave_out_cycles() {
    const AllocatorStats& stats = allocator_.stats();
    const std::int64_t device_calls = stats.device_allocs + stats.device_frees;
    const bool is_same_device = std::exchange(device_calls_, device_calls) == device_calls;
    if (!is_same_device || stats.active != stats.allocated) forget_seen();
    if (stats.active != stats.allocated) return;
    for (std::size_t g = 0; g < groups().size(); ++g) {
      Group& group = groups_[g];
      if (!group.is_searching || group.left == 0) continue;
      const std::int64_t cycle = cycle_of(g);
      if (cycle == 0 || (g > 0 && groups_[0].is_searching)) continue;
      group.left %= cycle;
      group.is_searching = false;
    }
  }

  void forget_seen() {
    for (Group& group : groups()) group.seen.clear();
  }

  // After so many rounds it lies as it does now, or 0.
  std::int64_t cycle_of(std::size_t g) {
    std::vector<std::vector<Place>>& seen = groups_[g].seen;
    seen.push_back(places(g));
    const auto same = std::find(seen.rbegin() + 1, seen.rend(), seen.back());
    return same == seen.rend() ? 0 : same - seen.rbegin();
  }

  std::vector<Place> places(std::size_t g) {
    Group& group = groups_[g];
    const std::size_t end = end_of_rounds(group);
    const auto shift = static_cast<std::int64_t>(end - calls_.round_begin);
    const auto is_in_use = [&](std::size_t slot) {
      return player_[slot] != no_block && group_of(slot) == g;
    };
    while (group.in_use < end && !is_in_use(group.in_use)) ++group.in_use;
    std::vector<Place> all;
    for (std::size_t slot = group.in_use; slot < end; ++slot)
      if (is_in_use(slot))
        all.push_back({static_cast<std::int64_t>(slot) - shift, allocator_.address(player_[slot]),
                       allocator_.size(player_[slot])});
    return all;
  }

  std::size_t end_of_rounds(const Group& group) const {
    return calls_.round_begin + static_cast<std::size_t>(group.done) * calls_.allocations;
  }

  // Slots of its own stand behind those of all rounds.
  bool play_tail(std::size_t begin, std::size_t end) {
    const std::size_t listed = calls_.round_begin + calls_.allocations;
    const std::size_t shift = static_cast<std::size_t>(done_ - 1) * calls_.allocations;
    player_.make_room(listed + shift + calls_.tail.size());
    for (std::size_t i = begin; i < end; ++i) {
      const AllocatorCall& call = calls_.tail[i];
      if (!play(first_.before(calls_.head.size() + calls_.round.size() + i))) return false;
      const bool is_own = call.slot >= listed;
      std::size_t slot = call.slot;
      if (is_own) slot += shift;
      if (!is_own && !calls_.is_about_head[i])
        slot += end_of_rounds(groups_[group_of(slot)]) - listed;
      if (!player_.play(call, slot)) return false;
    }
    return true;
  }

  const RepeatedCalls& calls_;
  CallPlayer player_;
  const CachingAllocator& allocator_;
  FirstCalls first_;
  std::vector<bool> is_small_;  ///< by slot as they are listed
  bool is_apart_ = false, is_true_ = true;
  std::array<Group, 2> groups_;  ///< large and small, or all
  std::int64_t done_ = 0;        ///< rounds of this step, by who does most
  std::int64_t device_calls_ = 0;
  Bytes peak_;  ///< before some play alone
};

}  // namespace

AllocatorResult replay_allocator(const RepeatedCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity) {
  RoundsReplay apart(calls, settings, capacity, true);
  const AllocatorResult result = apart.run();
  return apart.is_true() ? result : RoundsReplay(calls, settings, capacity, false).run();
}

}  // namespace tidemark::allocator
