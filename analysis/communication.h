// What ranks exchange in a step, and how much of that nothing hides.
#pragma once

#include "simulator/schedule.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark {

struct Communication {
  Nanoseconds alone{};    ///< collectives, one after the other
  Nanoseconds exposed{};  ///< while a collective runs and nothing computes

  bool operator==(const Communication&) const = default;
};

/// Linear in the number of runs, which are in the order of their beginnings.
Communication communication_of(const Trace& trace, const Schedule& schedule,
                               const Timeline& timeline);

}  // namespace tidemark
