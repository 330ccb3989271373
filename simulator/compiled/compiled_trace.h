// The step that torch.compile makes of an eager one: a Trace → Trace pass.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// As the step's framework says, of the whole model, whose blocks are gone then, or of each block
/// by itself. UsageError where an op, or ranks, have no known rules.
Trace compiled_trace(const Trace& trace);

}  // namespace tidemark
