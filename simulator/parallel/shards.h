// What one of several data-parallel ranks keeps of a parameter.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Does each rank keep a part of every parameter only (torch's fully_shard, DeepSpeed's ZeRO 3)?
bool parameters_are_cut(const StepOptions& step);

/// Among how many ranks parameters are cut: all replicas, or, of hybrid sharding, a group of them.
std::int64_t ranks_that_share(const StepOptions& step);

/// Does each rank update a part of the parameters only, and keep the states of that part?
bool states_are_cut(const StepOptions& step);

/// The part of a parameter that the rank's optimizer updates, as a tensor: itself if nothing is
/// cut. torch's fully_shard deals out rows, ⌈rows / ranks⌉ to each, so that the last ranks hold
/// padding (distributed/fsdp/_fully_shard/_fsdp_param.py); this is the largest shard, rank 0's.
/// With master weights it is in fp32. FSDP1 and DeepSpeed deal out elements, of which DeepSpeed
/// keeps fp32 copies beside them. Not a tensor of the trace.
Tensor local_parameter(const Trace& trace, TensorId parameter);

/// By tensor: elements that the rank's optimizer updates, where it keeps more of the parameter than
/// that (Megatron-LM's distributed optimizer, ZeRO 1 and 2). Empty: it updates all that it keeps.
std::vector<std::int64_t> updated_elements(const Trace& trace);

/// Elements of all ranks' shards together: those of the parameter and its padding.
std::int64_t padded_numel(const Trace& trace, TensorId parameter);

}  // namespace tidemark
