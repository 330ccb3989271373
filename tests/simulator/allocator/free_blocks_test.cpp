// The smallest sufficient block is found, the lowest of equals, just as an ordered set finds it.
#include "simulator/allocator/free_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tidemark::allocator::free_blocks_test {
namespace {

FreeBlock block(std::int64_t size, std::int64_t address) {
  return {size, address, BlockHandle{static_cast<std::uint32_t>(address)}};
}

TEST(FreeBlocks, FindsTheSmallestThatIsLargeEnough) {
  FreeBlocks free;
  for (const std::int64_t size : {4096, 512, 1024, 1 << 30}) free.insert(block(size, size));
  EXPECT_EQ(free[free.best_fit(512)].size, 512);
  EXPECT_EQ(free[free.best_fit(1024)].size, 1024);
  EXPECT_EQ(free[free.best_fit(1536)].size, 4096);
  EXPECT_EQ(free[free.best_fit(4608)].size, 1 << 30);
  EXPECT_EQ(free.best_fit((1 << 30) + 512), FreeBlocks::none);
}

TEST(FreeBlocks, PrefersTheLowestAddressAmongEqualSizes) {
  FreeBlocks free;
  for (const std::int64_t address : {3, 1, 2}) free.insert(block(512, address));
  FreeBlocks::Position position = free.best_fit(512);
  for (const std::int64_t address : {1, 2, 3}) {
    ASSERT_NE(position, FreeBlocks::none);
    EXPECT_EQ(free[position].address, address);
    position = free.next_larger(position);
  }
  EXPECT_EQ(position, FreeBlocks::none);
}

TEST(FreeBlocks, AreNoneAtFirst) {
  const FreeBlocks free;
  EXPECT_EQ(free.best_fit(512), FreeBlocks::none);
  EXPECT_EQ(free.largest(), FreeBlocks::none);
}

TEST(FreeBlocks, HoldSizesFrom512BytesToOneEbibyte) {
  FreeBlocks free;
  for (int exponent = 9; exponent <= 60; ++exponent)
    free.insert(block(std::int64_t{1} << exponent, exponent));
  for (int exponent = 9; exponent <= 60; ++exponent) {
    EXPECT_EQ(free[free.best_fit(std::int64_t{1} << exponent)].address, exponent);
    EXPECT_EQ(free[free.best_fit((std::int64_t{1} << exponent) - 511)].address, exponent);
  }
  EXPECT_EQ(free[free.largest()].address, 60);
}

using Place = std::pair<std::int64_t, std::int64_t>;  // size, address; zeros for none

Place place(const FreeBlocks& free, FreeBlocks::Position position) {
  if (position == FreeBlocks::none) return {};
  return {free[position].size, free[position].address};
}

// Sizes crowd some buckets and miss others.
TEST(FreeBlocks, AgreeWithAnOrderedSet) {
  std::mt19937_64 random(404);
  const auto random_size = [&] {
    const std::uint64_t units = random() % (std::uint64_t{1} << (random() % 20)) + 1;
    return static_cast<std::int64_t>(units) * 512;
  };
  FreeBlocks free;
  std::set<Place> expected;
  const auto at = [&](auto i) { return i == expected.end() ? Place() : *i; };
  for (std::int64_t step = 1; step < 20000; ++step) {
    SCOPED_TRACE(step);
    if (random() % 2 == 0) {
      const std::int64_t size = random_size();
      free.insert(block(size, step));
      expected.emplace(size, step);
    }
    ASSERT_EQ(place(free, free.largest()), expected.empty() ? Place() : *expected.rbegin());

    const std::int64_t size = random_size();
    const FreeBlocks::Position fit = free.best_fit(size);
    const auto expected_fit = expected.lower_bound({size, 0});
    ASSERT_EQ(place(free, fit), at(expected_fit));
    if (fit == FreeBlocks::none) continue;
    ASSERT_EQ(place(free, free.next_larger(fit)), at(std::next(expected_fit)));
    if (step % 3 != 0) continue;
    step % 2 == 0 ? free.erase_at(fit) : free.erase(FreeBlock(free[fit]));
    expected.erase(expected_fit);
  }
  std::vector<BlockHandle> all;
  free.list(all);
  EXPECT_EQ(all.size(), expected.size());
}

// Two sizes of one bucket, of which there are many times as many as a run holds: they come by
// chance or from the largest on, and all leave again by chance.
TEST(FreeBlocks, AgreeWithAnOrderedSetWhereOneBucketHasManyRuns) {
  std::mt19937_64 random(405);
  for (const bool comes_by_chance : {true, false}) {
    SCOPED_TRACE(comes_by_chance);
    std::vector<Place> places;
    for (std::int64_t address = 4000; address > 0; --address)
      places.emplace_back(address > 2600 ? 65 * 512 : 64 * 512, address);
    if (comes_by_chance) std::shuffle(places.begin(), places.end(), random);
    FreeBlocks free;
    std::set<Place> expected;
    const auto at = [&](auto i) { return i == expected.end() ? Place() : *i; };
    const auto agrees = [&] {
      EXPECT_EQ(place(free, free.largest()), expected.empty() ? Place() : *expected.rbegin());
      for (const std::int64_t size : {64 * 512, 65 * 512}) {
        const FreeBlocks::Position fit = free.best_fit(size);
        const auto expected_fit = expected.lower_bound({size, 0});
        EXPECT_EQ(place(free, fit), at(expected_fit));
        if (fit == FreeBlocks::none) continue;
        EXPECT_EQ(place(free, free.next_larger(fit)), at(std::next(expected_fit)));
      }
      return !testing::Test::HasFailure();
    };
    for (const auto& [size, address] : places) {
      free.insert(block(size, address));
      expected.emplace(size, address);
      ASSERT_TRUE(agrees());
    }
    FreeBlocks::Position position = free.best_fit(512);
    for (const Place& next : expected) {
      ASSERT_EQ(place(free, position), next);
      position = free.next_larger(position);
    }
    ASSERT_EQ(position, FreeBlocks::none);
    std::vector<BlockHandle> all;
    free.list(all);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), places.size());
    std::shuffle(places.begin(), places.end(), random);
    for (const auto& [size, address] : places) {
      free.erase(size, address);
      expected.erase({size, address});
      ASSERT_TRUE(agrees());
    }
  }
}

}  // namespace
}  // namespace tidemark::allocator::free_blocks_test
