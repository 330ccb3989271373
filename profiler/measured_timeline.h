// A timeline from the clock of a backend: the same type as a predicted one.
#pragma once

#include <vector>

#include "kernels/backend.h"
#include "simulator/timeline.h"

namespace tidemark::profiler {

/// Runs that name no step of the schedule, such as copies of results, are left out. `host` is when
/// the last step had been issued. A stream reaches an Allocate or a Free when its run before has
/// ended and the events that it waited for were recorded. What the device waited for the host is
/// not measured: waits_for_host is 0.
Timeline measured_timeline(const Schedule& schedule, const std::vector<Ran>& ran, Nanoseconds host);

}  // namespace tidemark::profiler
