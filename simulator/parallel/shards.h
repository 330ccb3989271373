// What one of several data-parallel ranks keeps of a parameter.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Does each rank keep a part of every parameter only (torch's fully_shard)?
bool parameters_are_cut(const StepOptions& step);

/// The part of a parameter that the rank's optimizer updates, as a tensor: itself if nothing is
/// cut. torch's fully_shard deals out rows, ⌈rows / ranks⌉ to each, so that the last ranks hold
/// padding (distributed/fsdp/_fully_shard/_fsdp_param.py); this is the largest shard, rank 0's.
/// With master weights it is in fp32. Not a tensor of the trace.
Tensor local_parameter(const Trace& trace, TensorId parameter);

/// Elements of all ranks' shards together: those of the parameter and its padding.
std::int64_t padded_numel(const Trace& trace, TensorId parameter);

}  // namespace tidemark
