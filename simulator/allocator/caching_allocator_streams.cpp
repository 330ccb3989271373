// Blocks that several streams use. A freed one stays active until the work that was queued on each
// of the other streams at that moment is complete:
//   record_stream   free            complete_events   allocate
//   use noted       one event per   the stream's      processes them; the block
//                   noted stream    events are over   returns to the cache
#include <utility>

#include "base/error.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

namespace {
constexpr std::uint32_t no_use = UINT32_MAX;
}  // namespace

void CachingAllocator::record_stream(BlockHandle block, std::uint32_t stream) {
  CHECK(stream < stream_limit);
  if (block == no_block || stream == allocated(block).pool / 2) return;
  std::uint32_t& first = blocks_[block].first_use;
  for (std::uint32_t use = first; use != no_use; use = uses_[use].next)
    if (uses_[use].stream == stream) return;

  if (stream >= streams_.size()) add_stream(stream);
  if (unused_use_ == no_use) {
    unused_use_ = static_cast<std::uint32_t>(uses_.size());
    uses_.push_back({.next = no_use});
  }
  const std::uint32_t added = std::exchange(unused_use_, uses_[unused_use_].next);
  uses_[added] = {stream, first};
  first = added;
}

void CachingAllocator::complete_events(std::uint32_t stream) {
  if (stream >= streams_.size() || streams_[stream].events.empty()) return;
  streams_[stream].complete = streams_[stream].events.size();
  events_complete_ = true;
}

void CachingAllocator::add_stream(std::uint32_t stream) {
  streams_.resize(stream + 1);
  pools_.resize(2 * streams_.size());
}

// Turns the block's uses into events.
void CachingAllocator::add_events(BlockHandle block) {
  MemoryBlock& freed = blocks_[block];
  freed.state = BlockState::Pending;
  while (freed.first_use != no_use) {
    const std::uint32_t use = std::exchange(freed.first_use, uses_[freed.first_use].next);
    uses_[use].next = std::exchange(unused_use_, use);
    streams_[uses_[use].stream].events.push_back(block);
    ++freed.events;
  }
}

void CachingAllocator::process_events() {
  events_complete_ = false;
  for (Stream& stream : streams_) {
    const auto incomplete = stream.events.begin() + static_cast<std::ptrdiff_t>(stream.complete);
    for (auto event = stream.events.begin(); event != incomplete; ++event)
      if (--blocks_[*event].events == 0) settle(*event);
    stream.events.erase(stream.events.begin(), incomplete);
    stream.complete = 0;
  }
}

void CachingAllocator::synchronize() {
  ++stats_.full_syncs;
  for (Stream& stream : streams_) stream.complete = stream.events.size();
  process_events();
}

}  // namespace tidemark::allocator
