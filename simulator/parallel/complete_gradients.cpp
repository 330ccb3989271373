// A backward begins with its seed. Those of pipelines lie between each other; there ops go back
// within a micro-batch, and an op that comes again, or one behind it, is another's.
#include "simulator/parallel/complete_gradients.h"

#include <algorithm>

namespace tidemark {
namespace {

bool is_of_another_batch(const Node& node, const Node& before) {
  const bool makes_gradients = node.task == Task::Backward || node.task == Task::WeightGradient;
  return node.op > before.op || (node.op == before.op && makes_gradients);
}

}  // namespace

bool is_trained(const Trace& trace, TensorId id) {
  const Tensor& tensor = trace[id];
  return tensor.category == Category::Parameter && tensor.trainable && tensor.storage == id;
}

CompleteGradients complete_gradients(const Trace& trace, const JointGraph& graph) {
  CompleteGradients found;
  std::vector<NodeId> last(trace.tensors.size(), no_node);
  const bool is_piped = trace.step.mesh[Axis::Pipeline] > 1;
  std::size_t begin = 0;  // of the backward
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].task == Task::Seed) begin = n;
    for (const InstanceId id : graph.writes(graph.nodes[n])) {
      const Instance& written = graph[id];
      if (written.role != Role::Gradient || written.tensor == no_tensor) continue;
      if (!is_trained(trace, written.tensor)) continue;
      NodeId& before = last[index(written.tensor)];
      const bool is_known = before != no_node && index(before) != n;
      const bool is_other =
          is_known &&
          (is_piped ? is_of_another_batch(graph.nodes[n], graph[before]) : index(before) < begin);
      if (is_other) found.all.push_back({written.tensor, before, false});
      before = static_cast<NodeId>(n);
    }
  }
  std::size_t end = 0;
  for (std::size_t t = last.size(); t-- > 0;)  // the order in which they become complete
    if (const NodeId after = last[t]; after != no_node) {
      found.all.push_back({static_cast<TensorId>(t), after, true});
      end = std::max(end, index(after) + 1);
    }
  std::ranges::stable_sort(found.all, {}, &CompleteGradient::after);
  while (end < graph.nodes.size() && graph.nodes[end].task != Task::Optimizer) ++end;
  found.end = static_cast<NodeId>(end);
  return found;
}

}  // namespace tidemark
