// Copies of offloaded tensors beside the step: when the forward waits for one to have left, and
// when the backward has one fetched.
#pragma once

#include <vector>

#include "simulator/graph/last_uses.h"
#include "simulator/graph/present_values.h"

namespace tidemark {

/// Without Plan::left_by and fetched_at nothing happens here: what is offloaded is copied on the
/// compute lane.
class Transfers {
 public:
  Transfers(const Trace& trace, const Plan& plan, GraphBuilder& graph, PresentValues& values);

  /// The op's forward comes next: what must have left by then has.
  void before_forward(OpId op);
  /// The backward comes next: everything has left.
  void before_backward();
  /// The op's gradients come next: copies that are to be under way by then begin.
  void before_gradients(OpId op);

 private:
  const bool has_any_;
  GraphBuilder& graph_;
  PresentValues& values_;
  const TensorsByOp left_by_, fetched_at_;
};

}  // namespace tidemark
