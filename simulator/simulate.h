// simulate(trace, schedule, device): predicts times and memory; nothing runs.
#pragma once

#include "simulator/cost/cost_model.h"
#include "simulator/timeline.h"

namespace tidemark {

/// Plays the schedule on the device: the host issues steps in order, each stream runs its own in
/// order, and runs that are active together share SMs and memory bandwidth: all slow down
/// by the factor that makes both fit.
Timeline simulate(const Trace& trace, const Schedule& schedule, const Device& device);
Timeline simulate(const Trace& trace, const Needs& needs, const Schedule& schedule,
                  const Device& device);
/// The same for who simulates several schedules of a trace on a device.
Timeline simulate(const CostModel& costs, const Schedule& schedule);

/// All on one stream: the runs and copies in issue order, none beside another.
Timeline simulate_alone(const CostModel& costs, const Schedule& schedule);

}  // namespace tidemark
