// Vector clocks of those that make schedules and places; the judge has its own (validate_clock.h).
#pragma once

#include <algorithm>
#include <array>

#include "simulator/schedule.h"

namespace tidemark {

/// How far each stream has been followed: entry t counts the runs and copies of stream t.
using Clock = std::array<std::uint32_t, max_streams>;

/// Has everything up to `earlier` happened at `later`?
inline bool follows(const Clock& later, const Clock& earlier) {
  for (std::size_t t = 0; t < max_streams; ++t)
    if (later[t] < earlier[t]) return false;
  return true;
}

inline void learn(Clock& clock, const Clock& other) {
  for (std::size_t t = 0; t < max_streams; ++t) clock[t] = std::max(clock[t], other[t]);
}

}  // namespace tidemark
