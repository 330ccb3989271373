// Expandable segments: wide ranges of addresses whose pages are mapped only when needed.
//   [ allocated ][ free ][ unmapped ][ allocated ][ free ][ unmapped …             ]
//                \______ a run _____/             \______ a run, with room to grow ______/
// A run of free and unmapped blocks can serve a request as one: what is unmapped in it gets mapped.
#include <algorithm>

#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

namespace {

constexpr std::int64_t gap_between_ranges = std::int64_t{1} << 40;

std::int64_t page_size(bool is_small) { return is_small ? 2 << 20 : 20 << 20; }

}  // namespace

// A block of at least `size` that is not in the cache; no_block if the device lacks the memory.
// Pages that were mapped before this became clear stay mapped, and cached.
BlockHandle CachingAllocator::map_for(std::uint32_t pool, std::int64_t size) {
  BlockHandle block = find_room(pool, size);
  if (block == no_block) block = new_address_range(pool);
  if (blocks_.is(block, BlockState::Unmapped)) block = map(block, size);
  while (block != no_block && blocks_[block].size < size)
    block = map(blocks_[block].next, size - blocks_[block].size);  // unites with what is before it
  if (block != no_block) uncache(block);
  return block;
}

// The beginning of the first run, by the addresses of unmapped blocks, that has room for `size`.
BlockHandle CachingAllocator::find_room(std::uint32_t pool, std::int64_t size) const {
  std::int64_t end = 0;  // of the last run that is too small
  for (const BlockHandle unmapped : pools_[pool].unmapped) {
    if (blocks_[unmapped].address < end) continue;
    const BlockHandle before = blocks_[unmapped].previous;
    const BlockHandle first = blocks_.is(before, BlockState::Free) ? before : unmapped;
    end = blocks_[first].address;
    for (BlockHandle block = first; block != no_block; block = blocks_[block].next) {
      const BlockState state = blocks_[block].state;
      if (state != BlockState::Free && state != BlockState::Unmapped) break;
      end += blocks_[block].size;
      if (end - blocks_[first].address >= size) return first;
    }
  }
  return no_block;
}

// Addresses for 9/8 of the device, none of them mapped.
BlockHandle CachingAllocator::new_address_range(std::uint32_t pool) {
  const std::int64_t size = round_up(capacity_ + capacity_ / 8, page_size(is_small(pool)));
  const std::int64_t address = take_addresses(size + gap_between_ranges);
  if (address == 0) return no_block;
  const BlockHandle range =
      blocks_.add({.address = address, .size = size, .segment = address, .pool = pool});
  add_unmapped(range);
  return range;
}

// Maps the first pages of an unmapped block, as many as `size` needs but no more than it has, and
// returns the free block that they become part of. All or none: no_block if memory runs out.
BlockHandle CachingAllocator::map(BlockHandle block, std::int64_t size) {
  const std::uint32_t pool = blocks_[block].pool;
  const std::int64_t mapped =
      round_up(std::min(size, blocks_[block].size), page_size(is_small(pool)));
  if (mapped > capacity_ - stats_.reserved.count) return no_block;
  remove_unmapped(block);
  if (mapped < blocks_[block].size) add_unmapped(blocks_.cut(block, mapped));
  ++stats_.device_allocs;
  count_reserved(pool, mapped);
  cache_united(block);
  return block;
}

// Unmaps the whole pages of a free block; what it has of others stays free. A range of addresses
// without any page left ends.
void CachingAllocator::unmap(BlockHandle block) {
  const MemoryBlock free = blocks_[block];
  const std::int64_t page = page_size(is_small(free.pool));
  const std::int64_t begin = round_up(free.address - free.segment, page) + free.segment;
  const std::int64_t whole_pages = (free.address + free.size - begin) / page;
  if (whole_pages <= 0) return;

  uncache(block);
  if (begin > free.address) {
    const BlockHandle rim = block;
    block = blocks_.cut(rim, begin - free.address);
    cache(rim);
  }
  const std::int64_t size = whole_pages * page;
  if (size < blocks_[block].size) cache(blocks_.cut(block, size));
  for (const BlockHandle neighbour : {blocks_[block].previous, blocks_[block].next}) {
    if (!blocks_.is(neighbour, BlockState::Unmapped)) continue;
    remove_unmapped(neighbour);
    blocks_.unite(block, neighbour);
  }
  ++stats_.device_frees;
  count_reserved(free.pool, -size);
  if (blocks_[block].is_whole()) return blocks_.remove(block);
  add_unmapped(block);
}

void CachingAllocator::add_unmapped(BlockHandle block) {
  blocks_[block].state = BlockState::Unmapped;
  pools_[blocks_[block].pool].unmapped.insert(find_unmapped(block), block);
}

void CachingAllocator::remove_unmapped(BlockHandle block) {
  pools_[blocks_[block].pool].unmapped.erase(find_unmapped(block));
}

// Where the block stands or belongs.
std::vector<BlockHandle>::iterator CachingAllocator::find_unmapped(BlockHandle block) {
  return std::ranges::lower_bound(pools_[blocks_[block].pool].unmapped, blocks_[block].address, {},
                                  [&](BlockHandle other) { return blocks_[other].address; });
}

}  // namespace tidemark::allocator
