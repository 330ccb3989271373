// The allocator calls of a planned step: those of the capture, where they are known to be its own.
#pragma once

#include "simulator/allocator/allocator_calls.h"
#include "simulator/strategies/strategy.h"

namespace tidemark::allocator {

/// Did the framework itself run the trace's step when it was captured, on a device with the same
/// kernels? Then the calls of the step that keeps everything are known.
bool was_recorded(const Trace& trace, const Device& device);
/// Did it run this one? Then its calls are known, temporaries inside of ops and what the first step
/// left included.
bool was_recorded(const PlannedStep& step, const Device& device);

/// As the capture has them, or else as calls_of() derives them from the schedule.
AllocatorCalls calls_of(const PlannedStep& step, const Schedule& schedule, const Device& device);

}  // namespace tidemark::allocator
