// Gradient accumulation, a part of differentiation: forward and backward once for each micro-batch,
// before the one update. The gradients of the micro-batch before are still there, and are added to;
// its values are not. A step of one micro-batch is this part's loop gone round once.
#pragma once

#include "simulator/graph/micro_batch.h"

namespace tidemark {

/// Appends the nodes of so many micro-batches.
void accumulate(const MicroBatches& batches, const Derived& derived, SavedValues& values,
                MicroBatch& batch);

}  // namespace tidemark
