// The step of an expert-parallel rank, which has some of the experts.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Each of the ep ranks of the step's mesh has as many experts of each layer, and exchanges the
/// visits of its tokens for those of its experts; the trace itself without expert parallelism.
/// InputError if experts cannot be shared so, with the nearest mesh that could where there is one.
Trace share_experts(Trace trace);

/// When all shapes are cut: what ops of experts say about themselves follows from these, and a rank
/// with one expert of each layer sorts nothing.
Trace with_counted_experts(Trace trace);

}  // namespace tidemark
