// The buckets in which DistributedDataParallel collects gradients.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// A parameter whose gradient is complete once a node is done.
struct ReadyGradient {
  TensorId parameter;
  NodeId after;
  bool operator==(const ReadyGradient&) const = default;
};

/// Of all that get a gradient, in the order in which the last micro-batch completes them.
std::vector<ReadyGradient> ready_gradients(const Trace& trace, const JointGraph& graph);

struct Bucket {
  std::vector<TensorId> parameters;
  Bytes size;
};

/// As rebuilt after the first step: gradients in the order in which they became ready, per dtype; a
/// bucket closes when it has reached its limit, 1 MiB of the first and `bucket_mib` of the others.
/// Who asks for another limit than the usual one has it for all
/// (compute_bucket_assignment_by_size() in reducer.cpp). In the order in which they close.
std::vector<Bucket> buckets_of(const Trace& trace, const std::vector<ReadyGradient>& ready,
                               const Sharding& sharing);

}  // namespace tidemark
