// The step of a context-parallel rank, which has some tokens of each sequence.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Each of the cp ranks of the step's mesh has as many tokens, and gathers the keys and values of
/// all for its own queries; the trace itself without context parallelism. InputError if the step
/// cannot be cut so, with the nearest mesh that could where there is one.
Trace cut_for_context(Trace trace);

}  // namespace tidemark
