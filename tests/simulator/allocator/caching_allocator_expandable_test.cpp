// expandable_segments.
#include "tests/simulator/allocator/caching_allocators.h"

namespace tidemark::allocator::caching_allocator_expandable_test {
namespace {

TEST(CachingAllocator, GrowsAnExpandableSegmentInPlace) {
  CachingAllocator allocator = allocator_with("expandable_segments:True");
  const BlockHandle first = get(allocator, 5_MiB);
  const BlockHandle second = get(allocator, 30_MiB);  // 15 MiB are free, one page more is mapped
  EXPECT_EQ(offset(allocator, first, first_expandable_address), 0);
  EXPECT_EQ(offset(allocator, second, first_expandable_address), 5 * mib);
  EXPECT_EQ(allocator.stats().reserved, 40_MiB);
  EXPECT_EQ(allocator.stats().device_allocs, 2);
  EXPECT_EQ(allocator.stats().segments, 0);
  EXPECT_EQ(allocator.stats().inactive_split_blocks, 0);
}

TEST(CachingAllocator, MapsSmallPagesInTheSmallPool) {
  CachingAllocator allocator = allocator_with("expandable_segments:True", 8_GiB);
  get(allocator, 1_KiB);
  EXPECT_EQ(allocator.stats().reserved_small, 2_MiB);
  // The small range took 9 GiB, and 1 TiB stays between two ranges.
  const BlockHandle large = get(allocator, {mib + 1});
  EXPECT_EQ(offset(allocator, large, first_expandable_address), (9LL << 30) + (1LL << 40));
  EXPECT_EQ(allocator.stats().reserved_large, 20_MiB);
}

TEST(CachingAllocator, SplitsExpandableBlocksDownTo512Bytes) {
  CachingAllocator allocator = allocator_with("expandable_segments:True,max_split_size_mb:21");
  EXPECT_EQ(allocator.size(get(allocator, {40 * mib - 512})), Bytes{40 * mib - 512});
}

// The hole of 5 MiB is taken rather than the 3 MiB at the end, which could grow.
TEST(CachingAllocator, SparesTheBlockThatCouldGrow) {
  CachingAllocator allocator = allocator_with("expandable_segments:True");
  const BlockHandle hole = get(allocator, 5_MiB);
  get(allocator, 12_MiB);
  allocator.free(hole);
  EXPECT_EQ(offset(allocator, get(allocator, 2_MiB), first_expandable_address), 0);
}

TEST(CachingAllocator, UnmapsWholePagesOnly) {
  CachingAllocator allocator = allocator_with("expandable_segments:True");
  const BlockHandle front = get(allocator, 5_MiB);
  const BlockHandle middle = get(allocator, 50_MiB);
  const BlockHandle back = get(allocator, 5_MiB);  // [55, 60)
  allocator.free(middle);                          // [5, 55) holds the page [20, 40)
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 40_MiB);
  EXPECT_EQ(allocator.stats().device_frees, 1);
  // The rim that cannot grow goes first, the other one with the gap, which is mapped again.
  EXPECT_EQ(offset(allocator, get(allocator, 15_MiB), first_expandable_address), 40 * mib);
  EXPECT_EQ(offset(allocator, get(allocator, 35_MiB), first_expandable_address), 5 * mib);
  EXPECT_EQ(allocator.stats().reserved, 60_MiB);
  allocator.free(front);
  allocator.free(back);
}

TEST(CachingAllocator, DropsARangeWithoutPages) {
  CachingAllocator allocator = allocator_with("expandable_segments:True", 8_GiB);
  allocator.free(get(allocator, 30_MiB));
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 0_B);
  // 9 GiB round up to 461 pages of 20 MiB.
  EXPECT_EQ(offset(allocator, get(allocator, 30_MiB), first_expandable_address),
            461 * 20 * mib + (1LL << 40));
}

// [40 used][20 free] of a 70 MiB device: 25 MiB need one page more, and none is left.
TEST(CachingAllocator, MapsAllPagesOrNone) {
  CachingAllocator allocator = allocator_with("expandable_segments:True", 70_MiB);
  get(allocator, 40_MiB);
  allocator.free(get(allocator, 20_MiB));
  EXPECT_FALSE(allocator.allocate(25_MiB, 0));
  EXPECT_EQ(allocator.stats().reserved, 40_MiB);  // the free page went with the retry
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_TRUE(allocator.allocate(20_MiB, 0));
}

TEST(CachingAllocator, LimitsExpandableSegmentsByTheFractionAsIfTheyWereNot) {
  CachingAllocator allocator = allocator_with("expandable_segments:True", 100_MiB, 0.5);
  get(allocator, 19_MiB);
  // 31 MiB would need 20 + 20 + 20 = 60 MiB; the check adds 20 and 32.
  EXPECT_FALSE(allocator.allocate(31_MiB, 0));
  CachingAllocator larger = allocator_with("expandable_segments:True", 104_MiB, 0.5);
  get(larger, 20_MiB);
  get(larger, 31_MiB);
  EXPECT_EQ(larger.stats().reserved, 60_MiB);  // more than the 52 that are allowed
}

TEST(CachingAllocator, FailsWhenAddressesRunOut) {
  CachingAllocator allocator = allocator_with("expandable_segments:True", {largest_size});
  std::uint32_t stream = 0;
  while (allocator.allocate(1_B, stream) && stream < 100) ++stream;
  EXPECT_EQ(stream, 7u);  // 9/8 EiB each, of 8
}

}  // namespace
}  // namespace tidemark::allocator::caching_allocator_expandable_test
