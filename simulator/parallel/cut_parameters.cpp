// Only what stays between steps is cut: a rewriter starts from that.
#include "simulator/parallel/cut_parameters.h"

#include "simulator/parallel/shards.h"

namespace tidemark {

JointGraph cut_parameters(const Trace& trace, JointGraph graph) {
  for (Instance& instance : graph.instances) {
    if (!instance.persistent || instance.tensor == no_tensor) continue;
    if (trace[instance.tensor].category != Category::Parameter) continue;
    if (instance.role != Role::Value && instance.role != Role::Gradient) continue;
    instance.role = instance.role == Role::Value ? Role::Shard : Role::GradientShard;
    instance.size = size(local_parameter(trace, instance.tensor));
  }
  return graph;
}

}  // namespace tidemark
