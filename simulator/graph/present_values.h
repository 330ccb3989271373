// The values that are present while the joint graph is written: which version of each storage, and
// how many reads of it are still to come after the forward pass.
#pragma once

#include "simulator/graph/named_instances.h"
#include "simulator/plan.h"

namespace tidemark {

class PresentValues {
 public:
  PresentValues(const Trace& trace, const Plan& plan, GraphBuilder& graph, NamedInstances& names);

  /// A micro-batch begins. `reads`, by storage: how often it is read after the forward pass.
  void expect(const std::vector<std::uint32_t>& reads) { reads_ = reads; }

  InstanceId of(TensorId storage) const { return value_[index(storage)]; }
  bool is_present(TensorId storage) const { return of(storage) != no_instance; }
  std::uint32_t reads_to_come(TensorId storage) const { return reads_[index(storage)]; }

  /// A parameter or an input: there all the time.
  void place(TensorId storage);
  /// What a node writes of the storage: a new version, over the present one if there is one.
  InstanceId write(TensorId storage);
  /// One read less to come. True if it was the last: somebody has to forget the storage.
  bool count_read(TensorId storage) { return --reads_[index(storage)] == 0; }
  /// When it is let go of, a variable names the value until the gradients of this op are done.
  void name(TensorId storage, OpId until);
  /// Lets go of the value. `at`: the op whose gradients come next or are under way; no_op in the
  /// forward.
  void drop(TensorId storage, OpId at);

 private:
  const Trace& trace_;
  const Plan& plan_;
  GraphBuilder& graph_;
  NamedInstances& names_;
  std::vector<std::uint32_t> reads_;
  std::vector<InstanceId> value_;
  std::vector<OpId> named_until_;  ///< by storage; only where something is
};

}  // namespace tidemark
