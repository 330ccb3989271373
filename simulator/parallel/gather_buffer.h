// The memory that Megatron-LM's own linears gather a sequence in under --sp: one for all of them,
// which stays (LinearWithGradAccumulationAndAsyncCommunication of core/tensor_parallel/layers.py,
// get_global_memory_buffer() of core/parallel_state.py). Transformer Engine's linears, those of
// blocks, gather in memory of their own.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// What is gathered for the head, or for the last of its own linears, on a stage without one: it
/// lies in that memory, each time over what was there, unless a plan keeps it. What else is
/// gathered there has memory of its own here, and so has all where weights get their gradients
/// later than inputs, which read it when something else is there. no_tensor: there is none.
TensorId gathered_in_place(const Trace& trace);

}  // namespace tidemark
