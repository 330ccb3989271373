// The step that torch.compile makes of an eager one: a Trace → Trace pass.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// As the step's framework says, of the whole model, whose blocks are gone then, or of each block
/// by itself. UsageError where an op, or ranks, have no known rules.
Trace compiled_trace(const Trace& trace);

/// Of a trace of compiled blocks, whose eager source it knows: the same of blocks in checkpoints
/// that keep by op (kept_calls.h).
Trace compiled_by_op(const Trace& trace);

}  // namespace tidemark
