// Halves a bucket without branches, and skips empty buckets by one bit for each.
#include "simulator/allocator/free_blocks.h"

#include <algorithm>
#include <bit>

namespace tidemark::allocator {
namespace {

int log2(std::uint64_t n) { return 63 - std::countl_zero(n); }

// Orders blocks by size, then by address, with one subtraction.
__extension__ using Key = unsigned __int128;

Key key_of(std::int64_t size, std::int64_t address) {
  return Key{static_cast<std::uint64_t>(size)} << 64 | static_cast<std::uint64_t>(address);
}

// One by one: what was just written in parts is read as a whole only after it has left for the
// cache.
void copy(const FreeBlock& from, FreeBlock& to) {
  to.size = from.size, to.address = from.address, to.block = from.block;
}

// How many stand before the place of (size, address), that is, are not below it. Searched from the
// end in growing steps, because that is where most come and go.
std::size_t count_not_below(const FreeBlock* blocks, std::size_t count, Key key) {
  const auto is_below = [&](std::size_t place) {
    return key_of(blocks[place].size, blocks[place].address) < key;
  };
  std::size_t end = count, step = 1;  // those from `end` on are below
  while (step <= end && is_below(end - step)) end -= step, step *= 2;
  std::size_t begin = end < step ? 0 : end - step + 1;  // those before `begin` are not
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (is_below(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

}  // namespace

FreeBlocks::Position FreeBlocks::best_fit(std::int64_t size) const {
  const std::uint32_t bucket = bucket_of(size);
  if (bucket >= buckets_.size()) return none;
  const Bucket& blocks = buckets_[bucket];
  if (!blocks.empty()) {
    const auto last = static_cast<std::uint32_t>(blocks.size() - 1);
    if (blocks[last].size >= size) return {bucket, last};
    if (blocks[0].size >= size) {
      const std::size_t count = count_not_below(blocks.data(), blocks.size(), key_of(size, 0));
      return {bucket, static_cast<std::uint32_t>(count - 1)};
    }
  }
  return smallest_from(bucket + 1);
}

FreeBlocks::Position FreeBlocks::next_larger(Position position) const {
  if (position.slot > 0) return {position.bucket, position.slot - 1};
  return smallest_from(position.bucket + 1);
}

FreeBlocks::Position FreeBlocks::largest() const {
  for (std::size_t word = filled_.size(); word-- > 0;)
    if (filled_[word] != 0) return {bucket_at(word, log2(filled_[word])), 0};
  return none;
}

void FreeBlocks::make_buckets(std::uint32_t count) {
  buckets_.resize(count);
  filled_.resize((count - 1) / word_bits + 1);
}

// Most come close to the end: a few make room one by one.
void FreeBlocks::insert_before_end(Bucket& blocks, std::int64_t size, std::int64_t address,
                                   BlockHandle block) {
  const Key key = key_of(size, address);
  blocks.emplace_back();
  FreeBlock* const begin = blocks.data();
  FreeBlock* place = begin + blocks.size() - 1;
  const auto belongs_here = [&] {
    return place == begin || key_of(place[-1].size, place[-1].address) >= key;
  };
  for (int shifted = 0; !belongs_here(); ++shifted) {
    if (shifted == 4) {
      FreeBlock* const end = place;
      place = begin + count_not_below(begin, static_cast<std::size_t>(end - begin), key);
      std::move_backward(place, end, end + 1);
      break;
    }
    copy(place[-1], place[0]);
    --place;
  }
  place->size = size, place->address = address, place->block = block;
}

void FreeBlocks::erase_before_end(std::uint32_t bucket, std::int64_t size, std::int64_t address) {
  Bucket& blocks = buckets_[bucket];
  const std::size_t count = count_not_below(blocks.data(), blocks.size(), key_of(size, address));
  blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(count - 1));
}

void FreeBlocks::erase_before_end(Position position) {
  Bucket& blocks = buckets_[position.bucket];
  blocks.erase(blocks.begin() + position.slot);
}

void FreeBlocks::list(std::vector<BlockHandle>& blocks) const {
  for (const Bucket& bucket : buckets_)
    for (const FreeBlock& free : bucket) blocks.push_back(free.block);
}

FreeBlocks::Position FreeBlocks::smallest_from(std::size_t bucket) const {
  std::size_t word = bucket / word_bits;
  if (word >= filled_.size()) return none;
  std::uint64_t filled = filled_[word] & (~std::uint64_t{0} << (bucket % word_bits));
  while (filled == 0) {
    if (++word == filled_.size()) return none;
    filled = filled_[word];
  }
  const std::uint32_t found = bucket_at(word, std::countr_zero(filled));
  return {found, static_cast<std::uint32_t>(buckets_[found].size() - 1)};
}

}  // namespace tidemark::allocator
