// The allocator's pool as a snapshot's events change it: which parts of the address space are
// segments, and which of those are blocks in use. A snapshot says what was requested; how large the
// block was that the allocator handed out follows from the free part that it was cut from.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "importers/memory_snapshot.h"

namespace tidemark::importers {

/// What the pool holds at one moment.
struct PoolState {
  Bytes reserved;     ///< in segments
  Bytes active;       ///< in blocks that are in use, or that other streams may still use
  Bytes largest_gap;  ///< of what is free, in one piece
  Bytes unused;       ///< in segments that nothing is in: empty_cache() would give them back
  std::size_t segments = 0, blocks = 0, gaps = 0;

  Bytes free() const { return reserved - active; }
};

class PoolReplay {
 public:
  /// Before the first event of the device.
  PoolReplay(const MemorySnapshot& snapshot, std::size_t device);

  struct Block {
    Bytes size;  ///< as handed out; of what was there before the recording, where it is gone at
                 ///< the end, the request rounded
    Bytes requested;
    StackId stack = no_stack;
    std::int64_t stream = 0;
    bool is_pending = false;  ///< freed, but other streams may still use it
  };

  /// What an event does to the blocks in use.
  struct Change {
    enum class Kind : std::uint8_t { None, Appears, Disappears, Pending };
    Kind kind = Kind::None;
    Block block = {};
  };

  /// In the order of the recording. An event that contradicts those before it changes nothing.
  Change apply(const SnapshotEvent& event);

  const std::map<std::int64_t, Block>& blocks() const { return blocks_; }
  Bytes reserved() const { return reserved_; }
  PoolState state() const;
  /// Events that contradicted those before.
  std::size_t contradictions() const { return contradictions_; }

 private:
  struct Segment {
    std::int64_t end = 0;
    bool is_expandable = false;
  };

  void add(std::int64_t begin, Bytes size, bool is_expandable);
  void remove(std::int64_t begin, Bytes size);
  Bytes block_size(std::int64_t address, Bytes requested) const;
  void find_blocks_before(const std::vector<SnapshotEvent>& events);

  const MemorySnapshot& snapshot_;
  std::int64_t device_;
  std::map<std::int64_t, Segment> segments_;  ///< by begin
  std::map<std::int64_t, Block> blocks_;      ///< by address
  Bytes reserved_;
  std::size_t contradictions_ = 0;
};

}  // namespace tidemark::importers
