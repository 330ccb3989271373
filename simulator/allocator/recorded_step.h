// The allocator calls of a planned step: those of the capture, where they are known to be its own.
#pragma once

#include "simulator/allocator/allocator_calls.h"
#include "simulator/strategies/strategy.h"

namespace tidemark::allocator {

/// Did the framework itself run this step when the trace was captured, on a device with the same
/// kernels? Then its calls are known, temporaries inside of ops and what the first step left
/// included.
bool was_recorded(const PlannedStep& step, const Device& device);

/// As the capture has them, or else as calls_of() derives them from the schedule.
AllocatorCalls calls_of(const PlannedStep& step, const Schedule& schedule, const Device& device);

}  // namespace tidemark::allocator
