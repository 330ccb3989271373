// A gradient that has the parameter's own tensor is nobody else's and needs no copy.
#include "simulator/parallel/kept_gradient.h"

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

void GradientVersions::find_written(const GraphRewriter& rewriter) {
  std::size_t written = written_;
  while (written < all_.size() && rewriter.now(all_[written]) != no_instance) ++written;
  if (written == written_) return;
  first_ = written_ > 0 ? written_ - 1 : 0;
  written_ = written;
}

InstanceId GradientVersions::last_written(const GraphRewriter& rewriter) {
  find_written(rewriter);
  CHECK(written_ > 0);
  return rewriter.now(all_[written_ - 1]);
}

void GradientVersions::stand_for(InstanceId made, GraphRewriter& rewriter) {
  find_written(rewriter);
  for (std::size_t i = first_; i < written_; ++i) rewriter.replace(all_[i], made);
}

}  // namespace tidemark
