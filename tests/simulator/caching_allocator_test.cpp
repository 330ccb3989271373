#include "simulator/caching_allocator.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "simulator/allocator_settings.h"

namespace tidemark {
namespace {

using namespace literals;

constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t first_address = 0x7f0000000000;
constexpr std::int64_t first_expandable_address = 0x100000000000;

CachingAllocator allocator_with(std::string_view settings, Bytes capacity = 80_GiB,
                                std::optional<double> fraction = std::nullopt) {
  return CachingAllocator(parse_allocator_settings(settings), capacity, fraction);
}

// For requests that are expected to succeed.
BlockHandle get(CachingAllocator& allocator, Bytes size, std::uint32_t stream = 0) {
  const auto block = allocator.allocate(size, stream);
  EXPECT_TRUE(block.has_value()) << size.count << " B";
  return block.value_or(no_block);
}

// The order of addresses in the first segment.
std::int64_t offset(const CachingAllocator& allocator, BlockHandle block,
                    std::int64_t first = first_address) {
  return allocator.address(block) - first;
}

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

// ---- max_split_size_mb, max_non_split_rounding_mb

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

// ---- record_stream

TEST(CachingAllocator, HoldsAFreedBlockBackForAnotherStream) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle block = get(allocator, 16_MiB);
  allocator.record_stream(block, 1);
  allocator.free(block);
  EXPECT_EQ(allocator.stats().allocated, 0_B);
  EXPECT_EQ(allocator.stats().active, 16_MiB);
  get(allocator, 16_MiB);
  EXPECT_EQ(allocator.stats().segments, 2);

  allocator.complete_events(1);
  EXPECT_EQ(allocator.stats().active, 32_MiB);  // not noticed yet
  EXPECT_EQ(offset(allocator, get(allocator, 16_MiB)), 0);
  EXPECT_EQ(allocator.stats().segments, 2);
}

TEST(CachingAllocator, IgnoresTheOwnStreamAndRepetitions) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle own = get(allocator, 16_MiB, 1);
  allocator.record_stream(own, 1);
  allocator.free(own);
  EXPECT_EQ(allocator.stats().active, 0_B);

  const BlockHandle twice = get(allocator, 16_MiB, 0);
  for (int i = 0; i < 3; ++i) allocator.record_stream(twice, 1);
  allocator.free(twice);
  allocator.complete_events(1);
  get(allocator, 1_B);
  EXPECT_EQ(allocator.stats().active, 512_B);
}

TEST(CachingAllocator, WaitsForAllStreamsThatUseABlock) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle block = get(allocator, 16_MiB);
  for (const std::uint32_t stream : {1u, 2u}) allocator.record_stream(block, stream);
  allocator.free(block);
  allocator.complete_events(2);
  get(allocator, 1_B);
  EXPECT_EQ(allocator.stats().active_blocks, 2);
  allocator.complete_events(1);
  get(allocator, 1_B);
  EXPECT_EQ(allocator.stats().active_blocks, 2);  // the two small ones
}

TEST(CachingAllocator, CompletesOnlyWhatWasFreedBefore) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle early = get(allocator, 16_MiB);
  const BlockHandle late = get(allocator, 16_MiB);
  for (const BlockHandle block : {early, late}) allocator.record_stream(block, 1);
  allocator.free(early);
  allocator.complete_events(1);
  allocator.free(late);
  get(allocator, 1_B);
  EXPECT_EQ(allocator.stats().active, Bytes{16 * mib + 512});
}

TEST(CachingAllocator, DoesNotPollForNoBytes) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle block = get(allocator, 16_MiB);
  allocator.record_stream(block, 1);
  allocator.free(block);
  allocator.complete_events(1);
  get(allocator, 0_B);
  EXPECT_EQ(allocator.stats().active, 16_MiB);
}

TEST(CachingAllocator, UnitesAPendingBlockOnlyWhenItsEventsAreOver) {
  CachingAllocator allocator = allocator_with("");
  const BlockHandle pending = get(allocator, 9_MiB);
  const BlockHandle other = get(allocator, 9_MiB);
  allocator.record_stream(pending, 1);
  allocator.free(pending);
  allocator.free(other);  // with the last 2 MiB
  EXPECT_EQ(allocator.stats().inactive_split, 11_MiB);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 0_B);
}

// ---- garbage_collection_threshold

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

// ---- expandable_segments

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

// ---- misuse is a bug of the caller

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
}  // namespace tidemark
