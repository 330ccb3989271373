// Cuts and unites neighbours; handles of removed blocks form a list and are used again.
#include "simulator/allocator/block_table.h"

#include <utility>

namespace tidemark::allocator {

BlockHandle BlockTable::add(const MemoryBlock& block) {
  if (unused_ == no_block) {
    blocks_.push_back(block);
    return BlockHandle{static_cast<std::uint32_t>(blocks_.size() - 1)};
  }
  const BlockHandle reused = std::exchange(unused_, (*this)[unused_].next);
  (*this)[reused] = block;
  return reused;
}

// With what a removed one has left in it.
BlockHandle BlockTable::add_unused() {
  if (unused_ != no_block) return std::exchange(unused_, (*this)[unused_].next);
  blocks_.emplace_back();
  return BlockHandle{static_cast<std::uint32_t>(blocks_.size() - 1)};
}

void BlockTable::remove(BlockHandle block) {
  (*this)[block].state = BlockState::Unused;
  (*this)[block].next = std::exchange(unused_, block);
}

// Part by part: what was just written so and is read as a whole comes only out of the cache.
BlockHandle BlockTable::cut(BlockHandle block, std::int64_t size) {
  const BlockHandle result = add_unused();
  MemoryBlock& kept = (*this)[block];
  MemoryBlock& rest = (*this)[result];
  rest.address = kept.address + size;
  rest.size = kept.size - size;
  rest.requested = kept.requested;
  rest.born = kept.born;
  rest.segment = kept.segment;
  rest.previous = block;
  rest.next = kept.next;
  rest.first_use = kept.first_use;
  rest.events = kept.events;
  rest.pool = kept.pool;
  rest.state = kept.state;
  if (rest.next != no_block) (*this)[rest.next].previous = result;
  kept.size = size;
  kept.next = result;
  return result;
}

void BlockTable::unite(BlockHandle block, BlockHandle neighbour) {
  MemoryBlock& kept = (*this)[block];
  const MemoryBlock& gone = (*this)[neighbour];
  kept.size += gone.size;
  if (kept.previous == neighbour) {
    kept.address = gone.address;
    kept.previous = gone.previous;
    if (kept.previous != no_block) (*this)[kept.previous].next = block;
  } else {
    kept.next = gone.next;
    if (kept.next != no_block) (*this)[kept.next].previous = block;
  }
  remove(neighbour);
}

}  // namespace tidemark::allocator
