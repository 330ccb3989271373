// Serves from the cache, then by a new segment, then by releasing cached ones and trying again.
#include "simulator/allocator/caching_allocator.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark::allocator {

namespace {
constexpr std::int64_t first_address = 0x7f0000000000;
constexpr std::int64_t first_expandable_address = 0x100000000000;
}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, Bytes capacity,
                                   std::optional<double> fraction)
    : settings_(settings),
      max_split_(settings.max_split_size.value_or(Bytes{INT64_MAX}).count),
      capacity_(capacity.count),
      allowed_(INT64_MAX),
      collects_garbage_(fraction && settings.garbage_collection_threshold > 0),
      next_address_(settings.expandable_segments ? first_expandable_address : first_address) {
  CHECK(1 <= capacity_ && capacity_ <= largest_size);
  if (!fraction) return;
  CHECK(0 <= *fraction && *fraction <= 1);
  allowed_ = static_cast<std::int64_t>(*fraction * static_cast<double>(capacity_));
}

// `refused` rather than an optional, which would leave in two parts and be read as one: allocate()
// is inline, and there it is never put together.
BlockHandle CachingAllocator::request(Bytes size, std::uint32_t stream) {
  CHECK(size.count >= 0 && stream < stream_limit);
  if (size.count == 0) return no_block;
  if (size.count >= largest_size) return ++stats_.ooms, refused;

  if (events_complete_) process_events();
  if (stream >= streams_.size()) add_stream(stream);
  const std::int64_t wanted = rounded_size(settings_, size).count;
  const BlockHandle taken = take(2 * stream + (wanted > largest_small_block.count ? 1 : 0), wanted);
  if (taken == no_block) return ++stats_.ooms, refused;
  if (should_split(blocks_[taken], wanted)) cache(blocks_.cut(taken, wanted));

  MemoryBlock& block = blocks_[taken];
  block.state = BlockState::Allocated;
  block.requested = size.count;
  stats_.allocated.count += block.size;
  stats_.active.count += block.size;
  stats_.requested.count += block.requested;
  ++stats_.active_blocks;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  return taken;
}

void CachingAllocator::free(BlockHandle block) {
  if (block == no_block) return;
  stats_.allocated.count -= allocated(block).size;
  if (blocks_[block].first_use == UINT32_MAX) return settle(block);
  add_events(block);
}

std::int64_t CachingAllocator::address(BlockHandle block) const {
  return block == no_block ? 0 : allocated(block).address;
}

Bytes CachingAllocator::size(BlockHandle block) const {
  return {block == no_block ? 0 : allocated(block).size};
}

const MemoryBlock& CachingAllocator::allocated(BlockHandle block) const {
  CHECK(blocks_.contains(block) && blocks_.is(block, BlockState::Allocated));
  return blocks_[block];
}

// A block of at least `size` that is no longer in the cache. Each step is taken only when those
// before it did not help, and their order shows in the counters.
BlockHandle CachingAllocator::take(std::uint32_t pool, std::int64_t size) {
  BlockHandle block = take_best_fit(pool, size);
  if (block != no_block) return block;
  if (collects_garbage_) collect_garbage();
  block = new_segment(pool, size);
  if (block == no_block && release_oversize(pool, size)) block = new_segment(pool, size);
  if (block != no_block) return block;
  empty_cache();
  ++stats_.retries;
  return new_segment(pool, size);  // and no second take_best_fit(): see allocate()
}

BlockHandle CachingAllocator::take_best_fit(std::uint32_t pool, std::int64_t size) {
  if (collects_garbage_) ++clocks_[pool % 2];
  FreeBlocks& free = pools_[pool].free;
  FreeBlocks::Position fit = free.best_fit(size);
  if (fit == FreeBlocks::none) return no_block;
  if (settings_.expandable_segments) fit = least_expandable(free, fit);

  const std::int64_t found = free[fit].size;
  const BlockHandle block = free[fit].block;
  if (size < max_split_ && found >= max_split_) return no_block;
  if (size >= max_split_ && found >= size + settings_.max_non_split_rounding.count) return no_block;
  free.erase_at(fit);
  count_free(blocks_[block], -1);
  return block;
}

// A block before unmapped pages counts as large as it could become, so that it is spared while the
// next larger block could become less.
FreeBlocks::Position CachingAllocator::least_expandable(const FreeBlocks& free,
                                                        FreeBlocks::Position fit) const {
  const auto expandable_size = [&](FreeBlocks::Position position) {
    const MemoryBlock& block = blocks_[free[position].block];
    const bool grows = blocks_.is(block.next, BlockState::Unmapped);
    return block.size + (grows ? blocks_[block.next].size : 0);
  };
  while (true) {
    const FreeBlocks::Position next = free.next_larger(fit);
    if (next == FreeBlocks::none || expandable_size(next) >= expandable_size(fit)) return fit;
    fit = next;
  }
}

bool CachingAllocator::should_split(const MemoryBlock& block, std::int64_t size) const {
  const std::int64_t rest = block.size - size;
  if (is_small(block.pool) || settings_.expandable_segments) return rest >= smallest_block.count;
  return size < max_split_ && rest > largest_small_block.count;
}

// Nobody uses the block any more, neither its owner nor another stream.
void CachingAllocator::settle(BlockHandle block) {
  stats_.active.count -= blocks_[block].size;
  stats_.requested.count -= blocks_[block].requested;
  --stats_.active_blocks;
  cache_united(block);
}

void CachingAllocator::cache(BlockHandle block) {
  MemoryBlock& cached = blocks_[block];
  cached.state = BlockState::Free;
  cached.born = clocks_[cached.pool % 2];
  pools_[cached.pool].free.insert(cached.size, cached.address, block);
  count_free(cached, 1);
}

void CachingAllocator::cache_united(BlockHandle block) {
  for (const BlockHandle neighbour : {blocks_[block].previous, blocks_[block].next}) {
    if (!blocks_.is(neighbour, BlockState::Free)) continue;
    uncache(neighbour);
    blocks_.unite(block, neighbour);
  }
  cache(block);
}

void CachingAllocator::uncache(BlockHandle block) {
  const MemoryBlock& cached = blocks_[block];
  pools_[cached.pool].free.erase(cached.size, cached.address);
  count_free(cached, -1);
}

void CachingAllocator::count_free(const MemoryBlock& block, std::int64_t sign) {
  if (settings_.expandable_segments) return;
  if (block.is_whole()) {
    free_segments_ += sign;
    return;
  }
  stats_.inactive_split_blocks += sign;
  stats_.inactive_split.count += sign * block.size;
}

}  // namespace tidemark::allocator
