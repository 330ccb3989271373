// Example, limits 1 and 25 MiB, gradients of 0.5, 0.8, 20, 9 and 3 MiB: [0.5 0.8] [20 9] [3].
#include "simulator/parallel/buckets.h"

#include <algorithm>
#include <map>

namespace tidemark {

std::vector<ReadyGradient> ready_gradients(const Trace& trace, const JointGraph& graph) {
  std::vector<NodeId> last(trace.tensors.size(), no_node);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const InstanceId id : graph.writes(graph.nodes[n])) {
      const Instance& written = graph[id];
      if (written.role == Role::Gradient && trace[written.tensor].trainable)
        last[index(written.tensor)] = static_cast<NodeId>(n);
    }
  std::vector<ReadyGradient> ready;
  for (std::size_t t = 0; t < last.size(); ++t)
    if (last[t] != no_node && trace.tensors[t].category == Category::Parameter)
      ready.push_back({static_cast<TensorId>(t), last[t]});
  std::ranges::stable_sort(ready, {}, &ReadyGradient::after);
  return ready;
}

std::vector<Bucket> buckets_of(const Trace& trace, const std::vector<ReadyGradient>& ready,
                               const Sharding& sharing) {
  constexpr std::int64_t mib = 1 << 20;
  const bool is_usual = sharing.bucket_mib == Sharding::usual_bucket_mib;
  struct Open {
    Bucket bucket = {};
    bool is_first = true;
  };
  std::map<DType, Open> open;
  std::vector<Bucket> closed;
  for (const ReadyGradient& gradient : ready) {
    auto& [bucket, is_first] = open[trace[gradient.parameter].dtype];
    bucket.parameters.push_back(gradient.parameter);
    bucket.size += size(trace[gradient.parameter]);
    const std::int64_t limit = is_first && is_usual ? 1 : sharing.bucket_mib;
    if (bucket.size.count < limit * mib) continue;
    closed.push_back(std::move(bucket));
    bucket = {}, is_first = false;
  }
  for (auto& [dtype, last] : open)
    if (!last.bucket.parameters.empty()) closed.push_back(std::move(last.bucket));
  return closed;
}

}  // namespace tidemark
