// States of bitsandbytes' paged optimizers, which lie in unified memory beside PyTorch's.
#pragma once

#include "simulator/cost/device.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Of all parameters that the step updates.
Bytes paged_states(const Trace& trace, const Schedule& schedule);

/// Does each step move them to the device and back?
bool moves_paged_states(const Trace& trace, const Schedule& schedule, const Device& device);

}  // namespace tidemark
