// record_stream and complete_events.
#include "tests/simulator/allocator/caching_allocators.h"

namespace tidemark::allocator::caching_allocator_streams_test {
namespace {

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

}  // namespace
}  // namespace tidemark::allocator::caching_allocator_streams_test
