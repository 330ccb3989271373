// From a recorded run to a timeline: what ran on the streams of its busiest GPU, and whose memory
// it was: PyTorch's blocks with their stacks where its history is in the file, else and beside it
// what was asked of the driver. Both are on one clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "importers/memory_snapshot.h"
#include "importers/run_file.h"
#include "importers/snapshot_timeline.h"
#include "importers/timeline_builder.h"

namespace tidemark::importers {

/// PyTorch's part, which views of snapshots take.
struct RunMemory {
  MemorySnapshot snapshot;
  SnapshotTimeline made;
};

/// Kernels and copies of one name.
struct RunWork {
  std::string name;
  std::size_t count = 0;
  Nanoseconds time{};
  Bytes moved;  ///< of copies and fills
};

/// All ranges of one name.
struct RunRange {
  std::string name;
  std::size_t count = 0;
  Nanoseconds host{};  ///< from begin to end on its thread
  Nanoseconds gpu{};   ///< of what was launched in it
};

struct RunTimeline {
  RecordedTimeline recorded;
  std::optional<RunMemory> memory;
  std::size_t devices = 0;         ///< that ran something
  std::vector<RunWork> work;       ///< most time first
  std::vector<RunRange> ranges;    ///< likewise
  std::vector<Nanoseconds> marks;  ///< when the optimizer had done a step
  Bytes outside;                   ///< most bytes at once that were not of PyTorch's allocator
  std::vector<std::string> lacks;  ///< as defects()
};

/// `name` is the recording's. InputError if it lasts longer than a timeline may.
RunTimeline timeline_of(const RunFile& run, const std::string& name);

}  // namespace tidemark::importers
