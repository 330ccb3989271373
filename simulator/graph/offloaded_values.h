// Offload, a part of differentiation: values that wait in the host's memory between forward and
// backward. A plan that copies nothing there has no such part.
#pragma once

#include "simulator/graph/last_uses.h"
#include "simulator/graph/present_values.h"

namespace tidemark {

/// Without Plan::left_by and fetched_at copies stand on the compute lane. With them they run beside
/// the step: the forward waits for one to have left, and the backward has one fetched ahead.
class OffloadedValues {
 public:
  /// All of them must outlive it.
  OffloadedValues(const Trace& trace, const Plan& plan, const Needs& needs, GraphBuilder& graph,
                  PresentValues& values);

  /// A micro-batch begins: the copies of the one before are of no use.
  void forget_all();
  bool has(TensorId storage) const { return on_host_[index(storage)] != no_instance; }
  void copy_out(TensorId storage);
  void copy_in(TensorId storage, Lane lane);

  /// The op's forward comes next: what must have left by then has.
  void before_forward(OpId op);
  /// The backward comes next: everything has left.
  void before_backward();
  /// The op's gradients come next: copies that are to be under way by then begin.
  void before_gradients(OpId op);

 private:
  const Plan& plan_;
  const Needs& needs_;
  GraphBuilder& graph_;
  PresentValues& values_;
  const bool has_lanes_;
  const TensorsByOp left_by_, fetched_at_;
  std::vector<InstanceId> on_host_;    ///< by storage
  std::vector<NodeId> copied_out_by_;  ///< by storage; those that left beside the step
  Operation operation_;                ///< the node at hand
};

/// Does the plan copy anything to the host?
bool offloads(const Plan& plan);

}  // namespace tidemark
