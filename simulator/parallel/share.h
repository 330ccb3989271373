// What data-parallel ranks share, as passes of the joint graph: one of a rank alone becomes that of
// a rank among others, with collectives as nodes and their buffers as instances.
#pragma once

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// As the step's mesh and sharding say; the graph itself for a mesh of ones. The optimizer's part
/// must be that of local_parameter() already. InputError with sharing_defect() of the step, if any.
JointGraph share_among_ranks(const Trace& trace, JointGraph graph);

/// torch's DistributedDataParallel from its second step on
/// (torch/csrc/distributed/c10d/reducer.cpp).
JointGraph reduce_in_buckets(const Trace& trace, const JointGraph& graph, const Sharding& sharing);

/// torch's fully_shard, a group per block and one of the rest
/// (torch/distributed/fsdp/_fully_shard/ of PyTorch 2.8).
JointGraph shard_fully(const Trace& trace, const JointGraph& graph, const Sharding& sharing);

/// Megatron-LM's contiguous main gradients, and its distributed optimizer
/// (core/distributed/param_and_grad_buffer.py, core/optimizer/distrib_optimizer.py).
JointGraph keep_main_gradients(const Trace& trace, const JointGraph& graph,
                               const Sharding& sharing);

/// DeepSpeed's ZeRO 1 and 2: each rank updates a part of the flat parameters
/// (deepspeed/runtime/zero/stage_1_and_2.py of 2026).
JointGraph partition_gradients(const Trace& trace, const JointGraph& graph,
                               const Sharding& sharing);

/// DeepSpeed's ZeRO 3: parameters are cut, too, and fetched module by module
/// (deepspeed/runtime/zero/stage3.py, partitioned_param_coordinator.py).
JointGraph partition_parameters(const Trace& trace, const JointGraph& graph,
                                const Sharding& sharing);

}  // namespace tidemark
