// A gradient that has the parameter's own tensor is nobody else's and needs no copy.
#include "simulator/parallel/kept_gradient.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark {

void keep_gradient(const Trace& trace, const JointGraph& graph, const Node& node,
                   GraphRewriter& rewriter) {
  rewriter.skip_next();
  const InstanceId sum = graph.writes(node)[0], added = graph.reads(node)[0];
  const TensorId parameter = graph[sum].tensor;
  if (graph[added].tensor == parameter) return rewriter.replace(sum, rewriter.now(added));
  Operation copy;  // what others share must not change
  copy.read(rewriter.now(added));
  const InstanceId own = rewriter.add({.size = size(trace[parameter]),
                                       .tensor = parameter,
                                       .role = Role::Gradient,
                                       .category = Category::Gradient});
  copy.write(own);
  rewriter.append(Task::Accumulate, node.lane, node.op, copy);
  rewriter.replace(sum, own);
}

InstanceId last_written(const std::vector<InstanceId>& versions, const GraphRewriter& rewriter) {
  const auto written = std::find_if(versions.rbegin(), versions.rend(), [&](InstanceId version) {
    return rewriter.now(version) != no_instance;
  });
  CHECK(written != versions.rend());
  return rewriter.now(*written);
}

void stand_for(const std::vector<InstanceId>& versions, InstanceId made, GraphRewriter& rewriter) {
  for (const InstanceId version : versions)
    if (rewriter.now(version) != no_instance) rewriter.replace(version, made);
}

}  // namespace tidemark
