// From a memory snapshot to a timeline: a buffer for each block that was in use, named by where it
// was allocated. What a snapshot does not say stays unknown: categories, shapes, ops.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "importers/memory_snapshot.h"
#include "importers/pool_replay.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark::importers {

/// Blocks of one stack and size are one tensor of the trace, which has no ops.
struct SnapshotTimeline {
  std::size_t device = 0;
  std::shared_ptr<const Trace> trace;
  Schedule schedule;
  Timeline timeline;
  std::vector<std::int64_t>
      offsets;                      ///< by buffer: its address, without what lies between segments
  std::vector<Bytes> requested;     ///< by buffer: what was asked for; it may have got more
  Bytes extent;                     ///< up to which the offsets go
  std::vector<std::string> stacks;  ///< by tensor: its frames, innermost first, for people
  std::vector<StackId> stack_of;    ///< by tensor
  std::vector<StackId> stack_ids;   ///< of all that occur
};

/// An attempt that failed.
struct OutOfMemory {
  Nanoseconds time{};
  Bytes requested, device_free;
  StackId stack = no_stack;
  PoolState pool;
};

/// Blocks at the peak that one stack has allocated.
struct StackGroup {
  StackId stack = no_stack;
  std::size_t blocks = 0;
  Bytes size;
};

struct SnapshotReport {
  std::size_t device = 0, devices_with_events = 0;
  std::size_t events = 0, unknown_events = 0, contradictions = 0;
  std::size_t blocks_before = 0;  ///< in use before the first event
  Nanoseconds duration{};
  Bytes active_peak, allocated_peak, reserved_peak;  ///< each at its own moment
  Nanoseconds peak_time{};                           ///< of active_peak
  PoolState at_peak, at_end;
  Bytes requested_at_peak;
  std::vector<StackGroup> alive;  ///< at the peak, largest first
  std::vector<OutOfMemory> failures;
};

/// Of the device with most events; `name` is the recording's. InputError if there is nothing in it.
SnapshotTimeline timeline_of(const MemorySnapshot& snapshot, const std::string& name);

SnapshotReport report_of(const MemorySnapshot& snapshot, const SnapshotTimeline& made);

/// "forward (model.py:31)": the innermost frame of the user's own code, behind the function that
/// it called where that is another: "linear ← forward (model.py:31)".
std::string site_of(const MemorySnapshot& snapshot, StackId stack);

}  // namespace tidemark::importers
