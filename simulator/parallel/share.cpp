// The table of passes by kind of sharding.
#include "simulator/parallel/share.h"

#include "base/error.h"

namespace tidemark {

JointGraph share_among_ranks(const Trace& trace, JointGraph graph) {
  const std::optional<Sharding> sharing = sharing_of(trace.step);
  if (!sharing) return graph;
  if (const std::string defect = sharing_defect(trace.step); !defect.empty())
    throw InputError("--shard: " + defect);
  switch (sharing->kind) {
    case Sharding::Kind::Ddp:
      return reduce_in_buckets(trace, graph, *sharing);
    case Sharding::Kind::Fsdp2:
    case Sharding::Kind::Fsdp1:
      return shard_fully(trace, graph, *sharing);
    case Sharding::Kind::Megatron:
      return keep_main_gradients(trace, graph, *sharing);
    case Sharding::Kind::Zero1:
    case Sharding::Kind::Zero2:
      return partition_gradients(trace, graph, *sharing);
    case Sharding::Kind::Zero3:
      return partition_parameters(trace, graph, *sharing);
  }
  return graph;
}

}  // namespace tidemark
