// Planned memory: one arena in which every buffer has a fixed offset. Two buffers may share
// addresses only if the schedule orders their lifetimes, whatever the timing.
#pragma once

#include <vector>

#include "simulator/schedule.h"

namespace tidemark {

/// Offsets are multiples of this, the granularity of PyTorch's allocator too; cudaMalloc
/// guarantees 256.
inline constexpr std::int64_t arena_alignment = 512;

struct Arena {
  std::vector<std::int64_t> offsets;  ///< by buffer
  Bytes size;
};

/// Best fit in issue order. Freed space carries the point of each stream up to which its last users
/// ran; a new buffer may take it only if its own stream is known to follow those points.
Arena plan_arena(const Schedule& schedule);

}  // namespace tidemark
