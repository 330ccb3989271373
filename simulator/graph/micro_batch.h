// The nodes of one micro-batch: its forward, then gradients in reverse op order with each region
// recovered before its gradients, or beside those of the region behind.
#pragma once

#include <optional>

#include "simulator/graph/gradient_nodes.h"
#include "simulator/graph/optimizer_nodes.h"
#include "simulator/graph/region_recovery.h"

namespace tidemark {

class MicroBatch {
 public:
  /// All of them must outlive it.
  MicroBatch(const Trace& trace, const Plan& plan, const Derived& derived, GraphBuilder& graph,
             NamedInstances& names, SavedValues& values, PresentGradients& gradients,
             OptimizerNodes& optimizer);

  /// Appends them, given that `values` expects this micro-batch's reads (accumulation.h). May be
  /// called again for the next one.
  void append();
  /// The step is over. Where it was recorded, its loop had the loss until then.
  void end_loss();

 private:
  void forward(OpId op);
  void backward();
  void gradients_of(OpId op, Lane lane);
  void gradients_of(OpId begin, OpId end, Lane lane);
  OpId end_of_askers(const Region& region) const;
  bool finds_its_operands(std::size_t op) const;
  Lane backward_region(std::size_t region);
  Lane lane_of(std::size_t turn) const;
  void start_chain(const Region& region);
  void recover_beside(const Region& region);
  bool is_chained(std::size_t region) const;
  void join();

  const Trace& trace_;
  const Plan& plan_;
  const Derived& derived_;
  GraphBuilder& graph_;
  NamedInstances& names_;
  SavedValues& values_;
  PresentGradients& gradients_;
  OptimizerNodes& optimizer_;
  ForwardNodes forward_;
  GradientNodes backward_;
  std::optional<RegionRecovery> recovery_;  ///< of plans with regions
  const TensorsByOp ends_;                  ///< of forward values

  InstanceId loss_ = no_instance;
  OpId position_ = no_op;     ///< the op whose gradients come next or are under way
  std::vector<NodeId> done_;  ///< by op, where reruns wait: the last node of its gradients
  std::size_t turn_ = 0;
  NodeId recovered_ = no_node, gradients_done_ = no_node;  ///< the last nodes of the last region's
};

}  // namespace tidemark
