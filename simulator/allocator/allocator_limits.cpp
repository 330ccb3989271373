// A request is refused only after all segments went back to the device that hold no block in use.
// Of those that are left each holds one, and is no larger than what the largest request asks the
// device for. So with so many blocks in use at once, and as many segments, nothing is refused:
//   before the step   [ a ][ b ][ c     ]            each block's own
//   step              [ d  …… ][ …… e ][ f …… ]      three in use: three of the largest
// A block is larger than it was asked for by what is not split off: up to 1 MiB of a large one.
// Tested by tests/simulator/allocator/allocator_limits_property_test.cpp.
#include "simulator/allocator/allocator_limits.h"

#include <algorithm>
#include <span>

namespace tidemark::allocator {
namespace {

using Kind = AllocatorCall::Kind;

class Count {
 public:
  explicit Count(const AllocatorSettings& settings) : settings_(settings) {}

  /// What stays, and is there before the step, or made in the first.
  void add_before(std::span<const AllocatorCall> calls, std::size_t made) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].kind != Kind::Allocate) continue;
      if (i + made >= calls.size()) {
        take(calls[i].slot, calls[i].size);
      } else if (calls[i].size.count > 0) {
        const Bytes rounded = rounded_size(settings_, calls[i].size);
        allocated_ += most(rounded);
        before_ += segment_size(rounded);
      }
    }
    note();
  }

  void play(const AllocatorCall& call, std::size_t slot) {
    if (call.kind == Kind::Allocate) {
      take(slot, call.size);
      note();
    } else if (call.kind == Kind::Free) {
      give(slot);
    }
  }

  /// How much there is now: equal after two rounds if one frees as much as it takes.
  struct Now {
    Bytes allocated;
    std::int64_t large, small;
    bool operator==(const Now&) const = default;
  };
  Now now() const { return {allocated_, large_, small_}; }

  AllocatorLimits limits() const {
    const auto segments = [](std::int64_t blocks, Bytes of) { return Bytes{blocks * of.count}; };
    const Bytes small = segment_size(largest_small_block);
    return {allocated_peak_, before_ + segments(large_peak_ + 1, std::max(largest_, small)) +
                                 segments(small_peak_, small)};
  }

 private:
  static bool is_large(Bytes rounded) { return rounded > largest_small_block; }
  static Bytes most(Bytes rounded) {
    return is_large(rounded) ? rounded + largest_small_block : rounded;
  }

  void take(std::size_t slot, Bytes size) {
    if (sizes_.size() <= slot) sizes_.resize(slot + 1);
    sizes_[slot] = size.count == 0 ? Bytes{} : rounded_size(settings_, size);
    change(sizes_[slot], 1);
    if (is_large(sizes_[slot])) largest_ = std::max(largest_, segment_size(sizes_[slot]));
  }

  void give(std::size_t slot) {
    if (slot >= sizes_.size()) return;  // of what was there before, which counts to the end
    change(sizes_[slot], -1);
    sizes_[slot] = {};
  }

  void change(Bytes rounded, std::int64_t blocks) {
    if (rounded == Bytes{}) return;
    allocated_.count += blocks * most(rounded).count;
    (is_large(rounded) ? large_ : small_) += blocks;
  }

  void note() {
    allocated_peak_ = std::max(allocated_peak_, allocated_);
    large_peak_ = std::max(large_peak_, large_);
    small_peak_ = std::max(small_peak_, small_);
  }

  const AllocatorSettings& settings_;
  std::vector<Bytes> sizes_;  ///< rounded, by slot; 0 where nothing is
  Bytes before_, largest_;    ///< segments
  Bytes allocated_, allocated_peak_;
  std::int64_t large_ = 0, small_ = 0, large_peak_ = 0, small_peak_ = 0;
};

bool are_usual(const AllocatorSettings& settings) {
  return !settings.expandable_segments && !settings.max_split_size;
}

// So many rounds back lies what a round frees, at most.
std::size_t rounds_back(const RepeatedCalls& calls) {
  std::size_t back = 0;
  for (const AllocatorCall& call : calls.round)
    if (call.kind == Kind::Free && call.slot < calls.round_begin)
      back = std::max(back, 1 + (calls.round_begin - 1 - call.slot) /
                                    std::max<std::size_t>(1, calls.allocations));
  return back;
}

}  // namespace

std::optional<AllocatorLimits> limits_of(const AllocatorCalls& calls,
                                         const AllocatorSettings& settings) {
  if (!are_usual(settings)) return std::nullopt;
  Count count(settings);
  count.add_before(calls.before, calls.made_at.size());
  const Count::Now begin = count.now();
  for (const AllocatorCall& call : calls.step) count.play(call, call.slot);
  if (count.now() != begin) return std::nullopt;
  return count.limits();
}

// Once all that a round frees was allocated in a round, each is like the one before.
std::optional<AllocatorLimits> limits_of(const RepeatedCalls& calls,
                                         const AllocatorSettings& settings) {
  if (!are_usual(settings)) return std::nullopt;
  Count count(settings);
  count.add_before(calls.before, calls.made_at.size());
  const Count::Now begin = count.now();
  for (const AllocatorCall& call : calls.head) count.play(call, call.slot);
  const auto different = static_cast<std::int64_t>(rounds_back(calls)) + 1;
  const std::int64_t rounds = std::min(calls.rounds, different + 1);
  for (std::int64_t r = 0; r < rounds; ++r) {
    const Count::Now before = count.now();
    const std::size_t shift = static_cast<std::size_t>(r) * calls.allocations;
    for (const AllocatorCall& call : calls.round) count.play(call, call.slot + shift);
    if (r == different && count.now() != before) return std::nullopt;
  }
  const std::size_t shift = static_cast<std::size_t>(rounds - 1) * calls.allocations;
  for (std::size_t i = 0; i < calls.tail.size(); ++i)
    count.play(calls.tail[i], calls.tail[i].slot + (calls.is_about_head[i] ? 0 : shift));
  if (count.now() != begin) return std::nullopt;
  return count.limits();
}

}  // namespace tidemark::allocator
