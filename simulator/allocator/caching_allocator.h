// PyTorch 2.6's CUDA caching allocator as a model: the same calls give the same block sizes,
// counters and out-of-memory answers. Example:
//   CachingAllocator allocator({}, 80_GiB);
//   const auto a = allocator.allocate(5_MiB, 0);  // reserves 20 MiB, hands out the first 5
//   const auto b = allocator.allocate(9_MiB, 0);  // takes the next 9; 6 MiB stay cached
//   allocator.free(*a);                           // stays reserved, for later requests
//
// Addresses are those of a device that hands out rising ones and none twice: a real device's
// differ. That matters only among free blocks of equal size, of which the lowest is taken.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "simulator/allocator/allocator_settings.h"
#include "simulator/allocator/block_table.h"
#include "simulator/allocator/free_blocks.h"

namespace tidemark::allocator {

struct AllocatorStats {
  Bytes allocated;       // in blocks handed out and not yet freed
  Bytes active;          // the same, and freed blocks that other streams may still use
  Bytes reserved;        // held from the device: the next two together
  Bytes reserved_small;  // by the small pools
  Bytes reserved_large;
  Bytes requested;       // what was asked for, of the active blocks
  Bytes inactive_split;  // in the free parts of segments that are partly in use
  Bytes allocated_peak;
  Bytes reserved_peak;
  std::int64_t segments = 0;  // expandable ones count neither here nor as inactive splits
  std::int64_t active_blocks = 0;
  std::int64_t inactive_split_blocks = 0;
  std::int64_t ooms = 0;
  std::int64_t retries = 0;        // requests for which the whole cache was released first
  std::int64_t device_allocs = 0;  // in expandable segments: how often pages were mapped
  std::int64_t device_frees = 0;   // in expandable segments: how often they were unmapped
  std::int64_t full_syncs = 0;     // waits for all other streams

  bool operator==(const AllocatorStats&) const = default;
};

class CachingAllocator {
 public:
  /// Streams are numbered from 0 and cost a small table each.
  static constexpr std::uint32_t stream_limit = 1024;

  /// For a device with `capacity` in [1 B, 1 EiB], of which a share of `fraction`, in [0, 1], may
  /// be reserved. A fraction, 1 included, also arms the garbage collection threshold.
  CachingAllocator(const AllocatorSettings& settings, Bytes capacity,
                   std::optional<double> fraction = std::nullopt);

  /// Nothing means out of memory. The same call may succeed right afterwards: blocks that only the
  /// last resort, a wait for all streams, has freed are not looked at again.
  std::optional<BlockHandle> allocate(Bytes size, std::uint32_t stream) {
    const BlockHandle block = request(size, stream);
    return block == refused ? std::nullopt : std::optional(block);
  }
  void free(BlockHandle block);
  /// Another stream than the block's own uses it. After free() it is not handed out again before
  /// the work then queued on that stream is complete.
  void record_stream(BlockHandle block, std::uint32_t stream);
  /// All work queued on `stream` so far is complete, which the next allocate() notices.
  void complete_events(std::uint32_t stream);
  /// Gives back to the device what is not in use, after a wait for all streams.
  void empty_cache();
  /// The most that is allocated counts from now on.
  void forget_allocated_peak() { stats_.allocated_peak = stats_.allocated; }

  const AllocatorStats& stats() const { return stats_; }
  std::int64_t address(BlockHandle block) const;  // 0 for no_block
  Bytes size(BlockHandle block) const;            // as handed out: at least what was requested

 private:
  struct StreamUse {
    std::uint32_t stream = 0;
    std::uint32_t next = 0;
  };

  struct Stream {
    std::vector<BlockHandle> events;  // oldest first: the block that each one holds back
    std::size_t complete = 0;         // so many of the oldest
  };

  /// Stream s has pool 2s for small blocks and pool 2s + 1 for large ones.
  struct Pool {
    FreeBlocks free;
    std::vector<BlockHandle> unmapped;  // by address
  };
  static bool is_small(std::uint32_t pool) { return pool % 2 == 0; }

  // caching_allocator.cpp: blocks leave the cache and return to it.
  static constexpr BlockHandle refused{UINT32_MAX - 1};
  BlockHandle request(Bytes size, std::uint32_t stream);
  const MemoryBlock& allocated(BlockHandle block) const;
  BlockHandle take(std::uint32_t pool, std::int64_t size);
  BlockHandle take_best_fit(std::uint32_t pool, std::int64_t size);
  FreeBlocks::Position least_expandable(const FreeBlocks& free, FreeBlocks::Position fit) const;
  bool should_split(const MemoryBlock& block, std::int64_t size) const;
  void settle(BlockHandle block);
  void cache(BlockHandle block);
  void cache_united(BlockHandle block);
  void uncache(BlockHandle block);
  void count_free(const MemoryBlock& block, std::int64_t sign);

  // caching_allocator_streams.cpp: blocks wait for other streams.
  void add_stream(std::uint32_t stream);
  void add_events(BlockHandle block);
  void process_events();
  void synchronize();

  // caching_allocator_device.cpp: segments come from the device and return to it.
  BlockHandle new_segment(std::uint32_t pool, std::int64_t size);
  std::int64_t take_addresses(std::int64_t size);
  void count_reserved(std::uint32_t pool, std::int64_t size);
  void release_segment(BlockHandle block);
  bool release_oversize(std::uint32_t pool, std::int64_t size);
  void collect_garbage();

  // caching_allocator_expandable.cpp: pages are mapped and unmapped.
  BlockHandle map_for(std::uint32_t pool, std::int64_t size);
  BlockHandle find_room(std::uint32_t pool, std::int64_t size) const;
  BlockHandle new_address_range(std::uint32_t pool);
  BlockHandle map(BlockHandle block, std::int64_t size);
  void unmap(BlockHandle block);
  void add_unmapped(BlockHandle block);
  void remove_unmapped(BlockHandle block);
  std::vector<BlockHandle>::iterator find_unmapped(BlockHandle block);

  AllocatorSettings settings_;
  std::int64_t max_split_;
  std::int64_t capacity_;
  std::int64_t allowed_;
  bool collects_garbage_;
  std::int64_t next_address_;
  bool events_complete_ = false;          // of some stream
  std::array<std::int64_t, 2> clocks_{};  // searches in small and in large pools: the unit of age
  std::int64_t free_segments_ = 0;        // whole ones, which the device could get back

  BlockTable blocks_;
  std::vector<StreamUse> uses_;
  std::uint32_t unused_use_ = UINT32_MAX;
  std::vector<Pool> pools_;
  std::vector<Stream> streams_;
  AllocatorStats stats_;
};

}  // namespace tidemark::allocator
