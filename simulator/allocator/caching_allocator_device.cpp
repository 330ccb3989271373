// What the caching allocator asks of the device and gives back to it.
#include <algorithm>
#include <utility>

#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

namespace {
constexpr std::int64_t address_step = 2 << 20;
}  // namespace

// A block of at least `size` that is not in the cache; no_block if the device has no more.
BlockHandle CachingAllocator::new_segment(std::uint32_t pool, std::int64_t size) {
  const std::int64_t segment = segment_size({size}).count;
  if (segment > allowed_ - stats_.reserved.count) return no_block;
  if (settings_.expandable_segments) return map_for(pool, size);
  if (segment > capacity_ - stats_.reserved.count) return no_block;
  const std::int64_t address = take_addresses(round_up(segment, address_step));
  if (address == 0) return no_block;
  ++stats_.segments;
  ++stats_.device_allocs;
  count_reserved(pool, segment);
  return blocks_.add({.address = address, .size = segment, .segment = address, .pool = pool});
}

// The first of `size` addresses above all earlier ones; 0 when there are no more.
std::int64_t CachingAllocator::take_addresses(std::int64_t size) {
  if (size > INT64_MAX - next_address_) return 0;
  return std::exchange(next_address_, next_address_ + size);
}

void CachingAllocator::count_reserved(std::uint32_t pool, std::int64_t size) {
  stats_.reserved.count += size;
  (is_small(pool) ? stats_.reserved_small : stats_.reserved_large).count += size;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
}

void CachingAllocator::release_segment(BlockHandle block) {
  uncache(block);
  --stats_.segments;
  ++stats_.device_frees;
  count_reserved(blocks_[block].pool, -blocks_[block].size);
  blocks_.remove(block);
}

// Makes room by giving up free oversize blocks of the pool, which are whole segments because they
// are never split: one of at least `size`, else the largest ones until their sum suffices.
bool CachingAllocator::release_oversize(std::uint32_t pool, std::int64_t size) {
  if (!settings_.max_split_size || settings_.expandable_segments) return false;
  const std::int64_t needed = std::max(size, max_split_);
  const FreeBlocks& free = pools_[pool].free;
  if (const auto fit = free.best_fit(needed); fit != FreeBlocks::none) {
    release_segment(free[fit].block);
    return true;
  }
  for (std::int64_t released = 0; released < needed;) {
    const auto largest = free.largest();
    if (largest == FreeBlocks::none || free[largest].size < max_split_) return false;
    released += free[largest].size;
    release_segment(free[largest].block);
  }
  return true;
}

void CachingAllocator::empty_cache() {
  synchronize();
  if (!settings_.expandable_segments && free_segments_ == 0) return;  // many retries end here
  std::vector<BlockHandle> free;
  for (const Pool& pool : pools_) pool.free.list(free);
  for (const BlockHandle block : free) {
    if (settings_.expandable_segments) {
      unmap(block);
    } else if (blocks_[block].is_whole()) {
      release_segment(block);
    }
  }
}

// Frees whole cached segments of the large pools, in each pass all that are at least as old as
// their mean, until no more than the threshold is reserved. A pass does not stop early.
void CachingAllocator::collect_garbage() {
  if (settings_.expandable_segments) return;
  const auto threshold = static_cast<std::int64_t>(settings_.garbage_collection_threshold *
                                                   static_cast<double>(allowed_));
  if (stats_.reserved.count <= threshold) return;

  std::vector<BlockHandle> segments;
  for (std::size_t pool = 1; pool < pools_.size(); pool += 2) pools_[pool].free.list(segments);
  std::erase_if(segments, [&](BlockHandle block) { return !blocks_[block].is_whole(); });
  const auto age = [&](BlockHandle block) { return clocks_[1] - blocks_[block].born; };
  while (stats_.reserved.count > threshold && !segments.empty()) {
    const auto count = static_cast<std::int64_t>(segments.size());
    std::int64_t total_age = 0;
    for (const BlockHandle block : segments) total_age += age(block);
    std::erase_if(segments, [&](BlockHandle block) {
      const bool is_old = age(block) * count >= total_age;  // the oldest one always is
      if (is_old) release_segment(block);
      return is_old;
    });
  }
}

}  // namespace tidemark::allocator
