// Recovery of regions, a part of differentiation: what the forward let go is computed again, or
// reconstructed from the end of a coupling, before the region's gradients. A plan without regions
// has no such part.
#pragma once

#include "simulator/graph/forward_nodes.h"
#include "simulator/graph/last_uses.h"

namespace tidemark {

/// Does the region run ops again, as PyTorch's checkpoints do, and undo no coupling?
bool is_checkpoint(const Recovery& recovery, const Region& region);

class RegionRecovery {
 public:
  /// All of them must outlive it. `done`: by op, the last node of its gradients; empty where no
  /// rerun waits for any.
  RegionRecovery(const Trace& trace, const Plan& plan, const Derived& derived, GraphBuilder& graph,
                 SavedValues& values, ForwardNodes& nodes, const std::vector<NodeId>& done);

  /// Appends it to the lane. `at`: the op whose gradients come next or are under way.
  void recover(const Region& region, Lane lane, OpId at);

 private:
  OpId end_of_function(const Region& region) const;
  void name_inputs(const Region& region);
  void let_go_of_unread(const Region& region);
  void recover_ops(std::size_t begin, std::size_t end, Lane lane);
  void rerun(std::size_t op, std::size_t end, Lane lane);
  void read(TensorId storage, std::size_t at, std::size_t end);
  void let_go(TensorId storage, std::size_t at, std::size_t end);
  void invert(std::size_t op, std::size_t end, Lane lane);

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  const Recovery& recovery_;
  const TensorsByOp held_;
  GraphBuilder& graph_;
  SavedValues& values_;
  ForwardNodes& nodes_;
  const std::vector<NodeId>& done_;
  OpId position_ = no_op;
  OpId stop_ = no_op;           ///< from here on nothing of the region runs again
  std::vector<TensorId> left_;  ///< storages that ops from there on would have read
  Operation operation_;         ///< the node at hand
};

}  // namespace tidemark
