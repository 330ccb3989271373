// Sizes are PyTorch's; blocks are split, united, cached and released; no memory left is a result.
#include "tests/simulator/allocator/caching_allocators.h"

namespace tidemark::allocator::caching_allocator_test {
namespace {

// {request, handed out}: of the compiled PyTorch 2.6.0, in an empty allocator.
TEST(CachingAllocator, HandsOutTheSizesThatPyTorchDoes) {
  const struct {
    std::int64_t request, handed_out;
    const char* settings = "";
  } rows[] = {{1, 512},
              {513, 1024},
              {1048576, 1048576},
              {1048577, 1049088},
              {5 * mib, 5 * mib},
              {10485759, 10485760},
              {10485761, 10486272},
              {15728647, 16777216},  // no more than 1 MiB would remain: not split
              {19365888, 19365888},
              {59610624, 59610624},
              {77463552, 77594624},
              {84 * mib, 96 * mib, "roundup_power2_divisions:4"},
              {84 * mib, 88 * mib, "roundup_power2_divisions:[64:8,128:2,256:4]"},
              {400 * mib, 512 * mib, "roundup_power2_divisions:[64:8,256:2,512:2]"}};
  for (const auto& row : rows) {
    CachingAllocator allocator = allocator_with(row.settings);
    const BlockHandle block = get(allocator, {row.request});
    EXPECT_EQ(allocator.size(block).count, row.handed_out) << row.request;
    EXPECT_EQ(allocator.stats().allocated.count, row.handed_out);
    EXPECT_EQ(allocator.stats().active.count, row.handed_out);
    EXPECT_EQ(allocator.stats().requested.count, row.request);
  }
}

TEST(CachingAllocator, SplitsALargeBlockOnlyIfMoreThanOneMebibyteRemains) {
  CachingAllocator exact = allocator_with("");
  EXPECT_EQ(exact.size(get(exact, 19_MiB)), 20_MiB);
  CachingAllocator more = allocator_with("");
  EXPECT_EQ(more.size(get(more, {19 * mib - 512})), Bytes{19 * mib - 512});
  EXPECT_EQ(more.stats().inactive_split, Bytes{mib + 512});
  EXPECT_EQ(more.stats().inactive_split_blocks, 1);
}

TEST(CachingAllocator, SplitsSmallBlocksDownToTheLast512Bytes) {
  CachingAllocator allocator = allocator_with("");
  get(allocator, 1_MiB);
  EXPECT_EQ(allocator.size(get(allocator, {mib - 512})), Bytes{mib - 512});
  EXPECT_EQ(allocator.stats().inactive_split, 512_B);
  get(allocator, 1_B);
  EXPECT_EQ(allocator.stats().inactive_split_blocks, 0);
  EXPECT_EQ(allocator.stats().segments, 1);
}

TEST(CachingAllocator, TakesTheSmallestBlockThatFits) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle large = get(allocator, 40_MiB);
  const BlockHandle medium = get(allocator, 30_MiB);
  allocator.free(large);
  allocator.free(medium);
  EXPECT_EQ(offset(allocator, get(allocator, 29_MiB)), 40 * mib);
}

TEST(CachingAllocator, TakesTheLowestOfEqualBlocks) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle low = get(allocator, 16_MiB);
  const BlockHandle middle = get(allocator, 16_MiB);
  const BlockHandle high = get(allocator, 16_MiB);
  for (const BlockHandle block : {high, low, middle}) allocator.free(block);
  for (const std::int64_t expected : {0, 16, 32})
    EXPECT_EQ(offset(allocator, get(allocator, 16_MiB)), expected * mib);
}

TEST(CachingAllocator, KeepsTheBlocksOfStreamsApart) {
  CachingAllocator allocator = allocator_with("");
  allocator.free(get(allocator, 16_MiB, 0));
  get(allocator, 16_MiB, 1);
  EXPECT_EQ(allocator.stats().segments, 2);
}

TEST(CachingAllocator, KeepsSmallAndLargeBlocksApart) {
  CachingAllocator allocator = allocator_with("");
  allocator.free(get(allocator, 5_MiB));
  get(allocator, 1_MiB);
  EXPECT_EQ(allocator.stats().reserved_large, 20_MiB);
  EXPECT_EQ(allocator.stats().reserved_small, 2_MiB);
}

TEST(CachingAllocator, UnitesNeighboursWhenTheyAreFreed) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle a = get(allocator, 5_MiB);
  const BlockHandle b = get(allocator, 5_MiB);
  const BlockHandle c = get(allocator, 5_MiB);
  allocator.free(a);
  allocator.free(c);  // with the last 5 MiB
  EXPECT_EQ(allocator.stats().inactive_split_blocks, 2);
  EXPECT_EQ(allocator.stats().inactive_split, 15_MiB);
  allocator.free(b);
  EXPECT_EQ(allocator.stats().inactive_split_blocks, 0);
  EXPECT_EQ(allocator.size(get(allocator, {19 * mib + 1})), 20_MiB);
}

TEST(CachingAllocator, GivesNoBlockForNoBytes) {
  CachingAllocator allocator = allocator_with("", 1_B);
  const BlockHandle block = get(allocator, 0_B);
  EXPECT_EQ(block, no_block);
  EXPECT_EQ(allocator.address(block), 0);
  EXPECT_EQ(allocator.size(block), 0_B);
  allocator.record_stream(block, 1);
  allocator.free(block);
  EXPECT_EQ(allocator.stats(), AllocatorStats{});
}

TEST(CachingAllocator, RefusesAnEbibyteWithoutTouchingTheCache) {
  CachingAllocator allocator = allocator_with("");
  allocator.free(get(allocator, 16_MiB));
  AllocatorStats expected = allocator.stats();
  ++expected.ooms;
  EXPECT_FALSE(allocator.allocate({largest_size}, 0));
  EXPECT_EQ(allocator.stats(), expected);
  EXPECT_FALSE(allocator.allocate({largest_size - 1}, 0));  // this one tries everything
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_EQ(allocator.stats().reserved, 0_B);
}

TEST(CachingAllocator, RemembersPeaks) {
  CachingAllocator allocator = allocator_with("");
  allocator.free(get(allocator, 40_MiB));
  allocator.free(get(allocator, 1_KiB));
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().allocated_peak, 40_MiB);
  EXPECT_EQ(allocator.stats().reserved_peak, 42_MiB);
  EXPECT_EQ(allocator.stats().reserved, 0_B);
}

TEST(CachingAllocator, UsesNoAddressTwice) {
  CachingAllocator allocator = allocator_with("", 20_MiB);
  for (const std::int64_t expected : {0, 16, 32}) {
    const BlockHandle block = get(allocator, {15 * mib + 7});
    EXPECT_EQ(offset(allocator, block), expected * mib);
    allocator.free(block);
    allocator.empty_cache();
  }
}

TEST(CachingAllocator, EmptiesItsCacheButForSegmentsInUse) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle kept = get(allocator, 5_MiB);
  const BlockHandle neighbour = get(allocator, 5_MiB);
  allocator.free(get(allocator, 40_MiB));
  allocator.free(neighbour);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 20_MiB);
  EXPECT_EQ(allocator.stats().device_frees, 1);
  EXPECT_EQ(allocator.stats().full_syncs, 1);
  EXPECT_EQ(allocator.address(kept), first_address);
}

TEST(CachingAllocator, ReleasesTheCacheAndRetries) {
  CachingAllocator allocator = allocator_with("", 40_MiB);
  allocator.free(get(allocator, 16_MiB));
  get(allocator, 30_MiB);  // 16 + 30 > 40
  EXPECT_EQ(allocator.stats().retries, 1);
  EXPECT_EQ(allocator.stats().device_frees, 1);
  EXPECT_EQ(allocator.stats().reserved, 30_MiB);
}

TEST(CachingAllocator, RunsOutOfMemoryAsAResult) {
  CachingAllocator allocator = allocator_with("", 40_MiB);
  const BlockHandle block = get(allocator, 30_MiB);
  EXPECT_FALSE(allocator.allocate(11_MiB, 0));
  EXPECT_EQ(allocator.stats().ooms, 1);
  EXPECT_EQ(allocator.stats().allocated, 30_MiB);
  allocator.free(block);
  EXPECT_TRUE(allocator.allocate(11_MiB, 0));
}

// The cached 15 MiB become free only by the wait for all streams, and then nobody looks at them.
TEST(CachingAllocator, RunsOutOfMemoryAlthoughABlockBecameFree) {
  CachingAllocator allocator = allocator_with("", 20_MiB);
  get(allocator, 5_MiB);
  const BlockHandle pending = get(allocator, 15_MiB);
  allocator.record_stream(pending, 1);
  allocator.free(pending);
  EXPECT_FALSE(allocator.allocate(15_MiB, 0));
  EXPECT_EQ(allocator.stats().inactive_split, 15_MiB);
  EXPECT_TRUE(allocator.allocate(15_MiB, 0));
}

TEST(CachingAllocator, HonoursAFractionRoundedDown) {
  EXPECT_FALSE(allocator_with("", 80_MiB, 0.5).allocate(41_MiB, 0));
  EXPECT_TRUE(allocator_with("", 80_MiB, 0.5).allocate(40_MiB, 0));
  EXPECT_FALSE(allocator_with("", {80 * mib - 1}, 0.5).allocate(40_MiB, 0));
  EXPECT_FALSE(allocator_with("", 80_GiB, 0.0).allocate(1_B, 0));
  EXPECT_TRUE(allocator_with("", 40_MiB, 1.0).allocate(40_MiB, 0));
}

// Misuse is a bug of the caller.
TEST(CachingAllocatorDeathTest, ChecksHandles) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle block = get(allocator, 16_MiB);
  EXPECT_DEATH(allocator.free(BlockHandle{7}), "bug");
  allocator.free(block);
  EXPECT_DEATH(allocator.free(block), "bug");
  EXPECT_DEATH(allocator.record_stream(block, 1), "bug");
  EXPECT_DEATH((void)allocator.address(block), "bug");
  EXPECT_DEATH((void)allocator.allocate(1_B, CachingAllocator::stream_limit), "bug");
  EXPECT_DEATH(CachingAllocator({}, 0_B), "bug");
  EXPECT_DEATH(CachingAllocator({}, 1_GiB, 1.5), "bug");
}

}  // namespace
}  // namespace tidemark::allocator::caching_allocator_test
