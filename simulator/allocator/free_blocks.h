// The free blocks of one pool of one stream, made for one question: which is the smallest that is
// large enough, and among equal ones the one at the lowest address?
//
// A bucket holds the blocks of similar size, eight buckets per power of two, and is sorted from
// the largest to the smallest: what best_fit() finds stands near the end, where it leaves cheaply.
// Measured with a thousand free blocks, this takes half the time of one sorted vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/allocator/block_table.h"

namespace tidemark::allocator {

struct FreeBlock {
  std::int64_t size = 0;  // a positive multiple of 512
  std::int64_t address = 0;
  BlockHandle block = no_block;

  bool operator==(const FreeBlock&) const = default;
};

class FreeBlocks {
 public:
  /// Valid until the next change.
  struct Position {
    std::uint32_t bucket;
    std::uint32_t slot;

    bool operator==(const Position&) const = default;
  };
  static constexpr Position none{UINT32_MAX, 0};

  const FreeBlock& operator[](Position position) const {
    return buckets_[position.bucket][position.slot];
  }

  Position best_fit(std::int64_t size) const;
  /// The next one in the order of size and address.
  Position next_larger(Position position) const;
  Position largest() const;

  /// In parts, which stay in registers: a fifth of a replay's time.
  void insert(std::int64_t size, std::int64_t address, BlockHandle block);
  void insert(const FreeBlock& free) { insert(free.size, free.address, free.block); }
  void erase(std::int64_t size, std::int64_t address);  // which must be there
  void erase(const FreeBlock& free) { erase(free.size, free.address); }
  void erase_at(Position position);

  /// Adds all of them to `blocks`.
  void list(std::vector<BlockHandle>& blocks) const;

 private:
  using Bucket = std::vector<FreeBlock>;

  Position smallest_from(std::size_t bucket) const;

  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> filled_;  // one bit per bucket
};

}  // namespace tidemark::allocator
