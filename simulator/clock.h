// Vector clocks of those that make schedules and places; the judge has its own (validate_clock.h).
#pragma once

#include "simulator/stream_counts.h"

namespace tidemark {

/// How far each stream has been followed: entry t counts the runs and copies of stream t.
using Clock = StreamCounts;

/// Has everything up to `earlier` happened at `later`?
inline bool follows(const Clock& later, const Clock& earlier) { return later.covers(earlier); }

inline void learn(Clock& clock, const Clock& other) { clock.raise_to(other); }

}  // namespace tidemark
