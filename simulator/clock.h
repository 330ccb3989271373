// Vector clocks of those that make schedules and places; the judge has its own (validate_clock.h).
#pragma once

#include "simulator/stream_counts.h"

namespace tidemark {

/// How far each stream has been followed: entry t counts the runs and copies of stream t.
using Clock = std::span<const std::uint32_t>;

/// Has everything up to `earlier` happened at `later`?
inline bool follows(Clock later, Clock earlier) { return covers(later, earlier); }

inline void learn(std::span<std::uint32_t> clock, Clock other) { raise_to(clock, other); }

}  // namespace tidemark
