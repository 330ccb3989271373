// The gradient of one micro-batch stays as it is, for a pass that adds up elsewhere.
#pragma once

#include <vector>

#include "simulator/graph/graph_rewriter.h"
#include "traces/trace.h"

namespace tidemark {

/// In place of the node that adds a gradient to a sum: the gradient itself, or where it is shared
/// with others a copy of its own, takes the sum's name.
void keep_gradient(const Trace& trace, const JointGraph& graph, const Node& node,
                   GraphRewriter& rewriter);

/// A gradient's versions in the old graph, in the order in which they are written. Who adds to the
/// last is done with those before it.
class GradientVersions {
 public:
  void add(InstanceId version) { all_.push_back(version); }
  /// In the new graph; one has been written.
  InstanceId last_written(const GraphRewriter& rewriter);
  /// Who reads one of them from now on reads what was made of it.
  void stand_for(InstanceId made, GraphRewriter& rewriter);

 private:
  void find_written(const GraphRewriter& rewriter);

  std::vector<InstanceId> all_;
  std::size_t written_ = 0;  ///< how many are
  std::size_t first_ = 0;    ///< of them that may be read or held again: one micro-batch's
};

}  // namespace tidemark
