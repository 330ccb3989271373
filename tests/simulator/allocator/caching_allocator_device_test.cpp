// What goes back to the device: max_split_size_mb, max_non_split_rounding_mb and
// garbage_collection_threshold.
#include <vector>

#include "tests/simulator/allocator/caching_allocators.h"

namespace tidemark::allocator::caching_allocator_device_test {
namespace {

TEST(CachingAllocator, GivesNoOversizeBlockToASmallerRequest) {
  CachingAllocator allocator = allocator_with("max_split_size_mb:64");
  allocator.free(get(allocator, 64_MiB));
  get(allocator, 60_MiB);
  EXPECT_EQ(allocator.stats().segments, 2);
}

TEST(CachingAllocator, GivesAnOversizeBlockWholeIfItIsNotTooLarge) {
  for (const bool exactly_too_large : {true, false}) {
    CachingAllocator allocator = allocator_with("max_split_size_mb:64");
    allocator.free(get(allocator, 100_MiB));
    const BlockHandle block = get(allocator, {80 * mib + (exactly_too_large ? 0 : 512)});
    EXPECT_EQ(allocator.stats().segments, exactly_too_large ? 2 : 1);
    EXPECT_EQ(allocator.size(block), exactly_too_large ? 80_MiB : 100_MiB);
  }
}

TEST(CachingAllocator, HonoursMaxNonSplitRounding) {
  for (const bool exactly_too_large : {true, false}) {
    CachingAllocator allocator =
        allocator_with("max_split_size_mb:64,max_non_split_rounding_mb:30");
    allocator.free(get(allocator, 100_MiB));
    get(allocator, {70 * mib + (exactly_too_large ? 0 : 512)});
    EXPECT_EQ(allocator.stats().segments, exactly_too_large ? 2 : 1);
  }
}

TEST(CachingAllocator, ReleasesOneOversizeBlockBeforeItRetries) {
  CachingAllocator allocator = allocator_with("max_split_size_mb:32", 90_MiB);
  allocator.free(get(allocator, 60_MiB));
  get(allocator, 39_MiB);  // 60 is 20 MiB too large, 60 + 40 exceed 90
  EXPECT_EQ(allocator.stats().device_frees, 1);
  EXPECT_EQ(allocator.stats().retries, 0);
  EXPECT_EQ(allocator.stats().full_syncs, 0);
  EXPECT_EQ(allocator.stats().reserved, 40_MiB);
}

TEST(CachingAllocator, ReleasesTheLargestOversizeBlocksUntilTheirSumSuffices) {
  CachingAllocator allocator = allocator_with("max_split_size_mb:32", 120_MiB);
  const std::vector<BlockHandle> blocks = {get(allocator, 34_MiB), get(allocator, 36_MiB),
                                           get(allocator, 38_MiB)};
  for (const BlockHandle block : blocks) allocator.free(block);
  get(allocator, 74_MiB);  // 38 + 36
  EXPECT_EQ(allocator.stats().device_frees, 2);
  EXPECT_EQ(allocator.stats().retries, 0);
  EXPECT_EQ(allocator.stats().reserved, 108_MiB);
}

TEST(CachingAllocator, KeepsOversizeBlocksReleasedThatDidNotSuffice) {
  CachingAllocator allocator = allocator_with("max_split_size_mb:32", 100_MiB);
  const BlockHandle kept = get(allocator, 40_MiB);
  allocator.free(get(allocator, 34_MiB));
  EXPECT_FALSE(allocator.allocate(70_MiB, 0));
  EXPECT_EQ(allocator.stats().reserved, 40_MiB);
  EXPECT_EQ(allocator.stats().device_frees, 1);
  allocator.free(kept);
}

TEST(CachingAllocator, ReleasesOversizeBlocksOfTheOwnStreamOnly) {
  CachingAllocator allocator = allocator_with("max_split_size_mb:32", 100_MiB);
  allocator.free(get(allocator, 60_MiB, 1));
  get(allocator, 50_MiB, 0);
  EXPECT_EQ(allocator.stats().retries, 1);
}

// Ages count searches in large pools. After four: A and B 2, C 1, their mean is 5/3.
TEST(CachingAllocator, FreesOldSegmentsFirst) {
  CachingAllocator allocator = allocator_with("garbage_collection_threshold:0.5", 100_MiB, 1.0);
  const BlockHandle a = get(allocator, 20_MiB);
  const BlockHandle b = get(allocator, 30_MiB);
  allocator.free(a);
  allocator.free(b);
  allocator.free(get(allocator, 40_MiB));  // 50 MiB reserved are not above the threshold
  EXPECT_EQ(allocator.stats().device_frees, 0);
  get(allocator, 45_MiB);
  EXPECT_EQ(allocator.stats().device_frees, 2);
  EXPECT_EQ(allocator.stats().retries, 0);
  EXPECT_EQ(allocator.stats().reserved, 86_MiB);
}

TEST(CachingAllocator, CollectsInPassesUntilBelowTheThreshold) {
  CachingAllocator allocator = allocator_with("garbage_collection_threshold:0.1", 100_MiB, 1.0);
  const BlockHandle a = get(allocator, 20_MiB);
  const BlockHandle b = get(allocator, 30_MiB);
  allocator.free(a);
  allocator.free(get(allocator, 16_MiB));  // takes a's block: not split, 20 MiB, by 1.6
  allocator.free(b);
  get(allocator, 45_MiB);  // one pass frees the older, the next the rest
  EXPECT_EQ(allocator.stats().reserved, 46_MiB);
  EXPECT_EQ(allocator.stats().retries, 0);
}

TEST(CachingAllocator, CollectsNoSmallOrPartlyUsedSegments) {
  CachingAllocator allocator = allocator_with("garbage_collection_threshold:0.1", 100_MiB, 1.0);
  allocator.free(get(allocator, 1_KiB));
  get(allocator, 5_MiB);
  get(allocator, 40_MiB);
  EXPECT_EQ(allocator.stats().device_frees, 0);
}

TEST(CachingAllocator, CollectsOnlyWhereAFractionIsSet) {
  CachingAllocator allocator = allocator_with("garbage_collection_threshold:0.5", 200_MiB);
  allocator.free(get(allocator, 120_MiB));
  get(allocator, 122_MiB);
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_EQ(allocator.stats().full_syncs, 1);
}

}  // namespace
}  // namespace tidemark::allocator::caching_allocator_device_test
