// The step that torch.compile makes of an eager one: a Trace → Trace pass.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Kernels of libraries stay as they are. What lies between two of them becomes an opaque op per
/// connected part: it writes what libraries and later parts read and what the backward keeps, and
/// nothing else. Blocks are gone, as a model that is compiled as a whole has none. UsageError where
/// an op, or ranks, have no known rules.
Trace compiled_trace(const Trace& trace);

}  // namespace tidemark
