// Plays allocator calls, each about a slot that keeps what it was given.
#pragma once

#include <vector>

#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

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
