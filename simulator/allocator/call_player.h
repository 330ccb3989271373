// Plays allocator calls, each about a slot that keeps what it was given.
#pragma once

#include <span>
#include <vector>

#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

/// What a first step makes and leaves.
class FirstCalls {
 public:
  /// `made_at`: of the last calls of `before`, before which call of the step each is made.
  FirstCalls(std::span<const AllocatorCall> before, std::span<const std::size_t> made_at)
      : there_(before.first(before.size() - made_at.size())),
        made_(before.last(made_at.size())),
        made_at_(made_at) {}

  /// Before the first step.
  std::span<const AllocatorCall> there() const { return there_; }
  /// Those not asked for yet that come before a call of the step.
  std::span<const AllocatorCall> before(std::size_t call) {
    const std::size_t begin = next_;
    while (next_ < made_.size() && made_at_[next_] <= call) ++next_;
    return made_.subspan(begin, next_ - begin);
  }

 private:
  std::span<const AllocatorCall> there_, made_;
  std::span<const std::size_t> made_at_;
  std::size_t next_ = 0;
};

class CallPlayer {
 public:
  CallPlayer(const AllocatorSettings& settings, Bytes capacity, std::size_t streams,
             std::size_t slots)
      : allocator_(settings, capacity), streams_(streams), handles_(slots, no_block) {}

  /// False if it is out of memory. `slot` instead of the call's own.
  bool play(const AllocatorCall& call, std::size_t slot) {
    const auto stream = static_cast<std::uint32_t>(call.stream);
    switch (call.kind) {
      case AllocatorCall::Kind::Allocate: {
        const auto handle = allocator_.allocate(call.size, stream);
        if (!handle) return false;
        handles_[slot] = *handle;
        break;
      }
      case AllocatorCall::Kind::Free:
        allocator_.free(handles_[slot]);
        handles_[slot] = no_block;
        break;
      case AllocatorCall::Kind::RecordStream:
        allocator_.record_stream(handles_[slot], stream);
        break;
      case AllocatorCall::Kind::CompleteEvents:
        complete_events();
        break;
    }
    return true;
  }

  void make_room(std::size_t slots) {
    if (handles_.size() < slots) handles_.resize(slots, no_block);
  }

  void forget_peak() { allocator_.forget_allocated_peak(); }

  const CachingAllocator& allocator() const { return allocator_; }
  /// What the slot was given and has not freed, or no_block.
  BlockHandle operator[](std::size_t slot) const { return handles_[slot]; }

 private:
  void complete_events() {
    for (std::size_t s = 0; s < streams_; ++s)
      allocator_.complete_events(static_cast<std::uint32_t>(s));
  }

  CachingAllocator allocator_;
  std::size_t streams_;
  std::vector<BlockHandle> handles_;  // by slot
};

}  // namespace tidemark::allocator
