// Halves a run without branches, and skips empty buckets by one bit for each.
#include "simulator/allocator/free_blocks.h"

#include <algorithm>
#include <bit>
#include <utility>

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

std::size_t count_not_below(const std::vector<FreeBlock>& run, Key key) {
  return count_not_below(run.data(), run.size(), key);
}

// A run that has grown longer than this is cut in two: it moves 12 KiB at most.
constexpr std::size_t longest_run = 512;

}  // namespace

FreeBlocks::Position FreeBlocks::best_fit(std::int64_t size) const {
  const std::uint32_t bucket = bucket_of(size);
  if (bucket >= buckets_.size()) return none;
  const Bucket& blocks = buckets_[bucket];
  if (!blocks.last.empty()) {
    if (blocks.last.back().size >= size) return end_of(bucket, blocks.before.size());
    const std::size_t run = run_of(blocks, size, 0);
    if (blocks[run].front().size >= size) {
      const std::size_t count = count_not_below(blocks[run], key_of(size, 0));
      return {bucket, static_cast<std::uint32_t>(run), static_cast<std::uint32_t>(count - 1)};
    }
  }
  return smallest_from(bucket + 1);
}

FreeBlocks::Position FreeBlocks::next_larger(Position position) const {
  if (position.slot > 0) return {position.bucket, position.run, position.slot - 1};
  if (position.run > 0) return end_of(position.bucket, position.run - 1);
  return smallest_from(position.bucket + 1);
}

FreeBlocks::Position FreeBlocks::largest() const {
  for (std::size_t word = filled_.size(); word-- > 0;)
    if (filled_[word] != 0) return {bucket_at(word, log2(filled_[word])), 0, 0};
  return none;
}

void FreeBlocks::make_buckets(std::uint32_t count) {
  buckets_.resize(count);
  filled_.resize((count - 1) / word_bits + 1);
}

// The last run that has a block not below (size, address), or the first.
std::size_t FreeBlocks::run_of(const Bucket& bucket, std::int64_t size, std::int64_t address) {
  const Key key = key_of(size, address);
  const auto is_not_below = [&](const Run& run) {
    return key_of(run.front().size, run.front().address) >= key;
  };
  if (bucket.before.empty() || is_not_below(bucket.last)) return bucket.before.size();
  const auto end = std::partition_point(bucket.before.begin(), bucket.before.end(), is_not_below);
  return end == bucket.before.begin() ? 0
                                      : static_cast<std::size_t>(end - bucket.before.begin() - 1);
}

void FreeBlocks::cut(Bucket& bucket, std::size_t run) {
  Run& long_run = bucket[run];
  const auto half = long_run.begin() + static_cast<std::ptrdiff_t>(long_run.size() / 2);
  Run larger(long_run.begin(), half);
  long_run.erase(long_run.begin(), half);
  bucket.before.insert(bucket.before.begin() + static_cast<std::ptrdiff_t>(run), std::move(larger));
}

// Most come close to the end: a few make room one by one.
void FreeBlocks::insert_before_end(Bucket& bucket, std::int64_t size, std::int64_t address,
                                   BlockHandle block) {
  const Key key = key_of(size, address);
  const std::size_t run = run_of(bucket, size, address);
  Run& blocks = bucket[run];
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
  if (blocks.size() > longest_run) cut(bucket, run);
}

void FreeBlocks::leave_run(std::uint32_t bucket) {
  Bucket& blocks = buckets_[bucket];
  if (blocks.before.empty()) {
    filled_[bucket / word_bits] &= ~(std::uint64_t{1} << (bucket % word_bits));
  } else {
    blocks.last = std::move(blocks.before.back());
    blocks.before.pop_back();
  }
}

void FreeBlocks::erase_before_end(std::uint32_t bucket, std::int64_t size, std::int64_t address) {
  const std::size_t run = run_of(buckets_[bucket], size, address);
  const std::size_t count = count_not_below(buckets_[bucket][run], key_of(size, address));
  erase_before_end(
      {bucket, static_cast<std::uint32_t>(run), static_cast<std::uint32_t>(count - 1)});
}

void FreeBlocks::erase_before_end(Position position) {
  Bucket& bucket = buckets_[position.bucket];
  Run& run = bucket[position.run];
  run.erase(run.begin() + position.slot);
  if (run.empty())
    bucket.before.erase(bucket.before.begin() + position.run);
  else if (run.size() > longest_run)  // it grew at its end
    cut(bucket, position.run);
}

void FreeBlocks::list(std::vector<BlockHandle>& blocks) const {
  for (const Bucket& bucket : buckets_)
    for (std::size_t run = 0; run <= bucket.before.size(); ++run)
      for (const FreeBlock& free : bucket[run]) blocks.push_back(free.block);
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
  return end_of(found, buckets_[found].before.size());
}

}  // namespace tidemark::allocator
