// The gradients that are present while the backward of the joint graph is written: which instance
// each tensor's gradient is in, how many share it, and how contributions are summed.
#pragma once

#include "simulator/graph/named_instances.h"
#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

/// Where nodes of the backward go: with the gradient of this input of this op, on this lane.
struct BackwardPlace {
  OpId op;
  std::uint8_t input;
  Lane lane;
};

class PresentGradients {
 public:
  PresentGradients(const Trace& trace, const Plan& plan, const Needs& needs, GraphBuilder& graph,
                   NamedInstances& names);

  /// Where the tensor's gradient is, or no_instance.
  InstanceId of(TensorId tensor) const { return slot_[index(tensor)]; }

  /// A parameter whose gradient stays between steps.
  void place(TensorId parameter);
  /// The loss's own gradient; `producer` computes the loss.
  void seed(OpId producer);
  /// Whoever handed it in has it until now.
  void end_seed();
  /// One contribution to the tensor's gradient, in memory of its own.
  InstanceId add(TensorId tensor);
  /// As add(), in the memory of a value of that size.
  InstanceId add_over(TensorId tensor, InstanceId value);
  /// Do others read the memory of the tensor's gradient, too?
  bool is_shared(TensorId tensor) {
    return of(tensor) != no_instance && references(of(tensor)) > 1;
  }
  /// One more input has this gradient for its own.
  void share(InstanceId gradient) { ++references(gradient); }
  /// Adds a contribution to the tensor's gradient, or takes it over as the first.
  void contribute(TensorId tensor, InstanceId contribution, BackwardPlace at);
  /// The op that made the tensor has used its gradient.
  void drop(TensorId tensor, OpId at);

 private:
  bool is_leaf(TensorId tensor) const { return trace_[tensor].trainable; }
  InstanceId make(TensorId tensor, Category category);
  std::uint32_t& references(InstanceId gradient);
  void unreference(InstanceId gradient, OpId at);
  bool adds_in_place(TensorId tensor);
  bool is_view(TensorId tensor, BackwardPlace made_at) const;
  bool takes_part(TensorId tensor, InstanceId contribution, BackwardPlace at) const;
  TensorId name_of(InstanceId gradient) const;
  void name(InstanceId gradient, TensorId tensor);

  const Trace& trace_;
  const Plan& plan_;
  const Framework& framework_;
  GraphBuilder& graph_;
  NamedInstances& names_;
  Operation operation_;
  InstanceId seed_ = no_instance;
  std::vector<InstanceId> slot_;           ///< by tensor
  std::vector<bool> holds_view_;           ///< by tensor: of the micro-batch at hand
  std::vector<TensorId> leaf_behind_;      ///< by tensor: itself, or what it is a view of
  std::vector<std::uint32_t> references_;  ///< by instance: gradients that share it
  std::vector<TensorId> name_;             ///< by instance: the coupling state whose gradient a
                                           ///< variable of published code calls it
};

}  // namespace tidemark
