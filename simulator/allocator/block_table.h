// The blocks of a caching allocator: stretches of addresses that are cut and united all the time.
//   segment   [ block ][ block       ][ block ]     each knows its neighbours
// They live in one vector and refer to each other by handle, so steady use allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::allocator {

/// A block, for the caller of the allocator a live allocation. Used again after its end.
enum class BlockHandle : std::uint32_t {};

/// What a request for no bytes gets. May be freed and recorded, to no effect.
inline constexpr BlockHandle no_block{UINT32_MAX};

/// Pending: freed, but other streams may still use it. Unmapped: addresses without memory.
enum class BlockState : std::uint8_t { Unused, Allocated, Pending, Free, Unmapped };

struct MemoryBlock {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;  // while Allocated or Pending
  std::int64_t born = 0;       // while Free: the clock when it became so
  std::int64_t segment = 0;    // where its segment begins
  BlockHandle previous = no_block;
  BlockHandle next = no_block;           // while Unused: the next unused one
  std::uint32_t first_use = UINT32_MAX;  // while Allocated: of the uses on other streams
  std::uint32_t events = 0;              // while Pending: the outstanding ones
  std::uint32_t pool = 0;
  BlockState state = BlockState::Unused;

  bool is_whole() const { return previous == no_block && next == no_block; }
};

class BlockTable {
 public:
  MemoryBlock& operator[](BlockHandle block) { return blocks_[static_cast<std::size_t>(block)]; }
  const MemoryBlock& operator[](BlockHandle block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }
  bool contains(BlockHandle block) const {
    return static_cast<std::size_t>(block) < blocks_.size();
  }
  bool is(BlockHandle block, BlockState state) const {
    return block != no_block && (*this)[block].state == state;
  }

  /// Like cut(), ends the validity of references to blocks.
  BlockHandle add(const MemoryBlock& block);
  void remove(BlockHandle block);

  /// The block keeps its first `size` bytes. The rest becomes the returned block, with the same
  /// state.
  BlockHandle cut(BlockHandle block, std::int64_t size);
  /// The block takes the addresses of one of its neighbours, which ends.
  void unite(BlockHandle block, BlockHandle neighbour);

 private:
  BlockHandle add_unused();

  std::vector<MemoryBlock> blocks_;
  BlockHandle unused_ = no_block;
};

}  // namespace tidemark::allocator
