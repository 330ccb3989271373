// The optimizer's part of the joint graph: the state that stays between steps, and the update of
// every parameter at the step's end.
#pragma once

#include "simulator/graph/present_gradients.h"
#include "simulator/graph/present_values.h"
#include "simulator/needs.h"

namespace tidemark {

class OptimizerNodes {
 public:
  OptimizerNodes(const Trace& trace, const Needs& needs, GraphBuilder& graph, PresentValues& values,
                 PresentGradients& gradients);

  /// States, moving averages, buckets, and gradients that persist.
  void place_state();
  /// Updates what has all of its gradient when this op's backward is done, if the step updates in
  /// the backward.
  void after_backward(OpId op, Lane lane);
  /// Updates every parameter that got a gradient and has not been updated, and releases the
  /// gradients that do not persist.
  void append();

 private:
  void place_state(TensorId parameter, bool learns);
  void append(const OptimizerRow& row);
  const Tensor& local(TensorId parameter);
  const OptimizerRow& row_of(TensorId parameter) const;
  OptimizerForm form_of(const OptimizerRow& row) const;
  bool waits_for_update(TensorId parameter) const;
  void add_update(TensorId parameter);
  void add_recorded_workspace(const std::vector<TensorId>& updated);
  void add_temporaries(TensorId parameter, const std::vector<Bytes>& sizes,
                       std::vector<InstanceId>* named);
  void update(Lane lane);

  const Trace& trace_;
  const Needs& needs_;
  const Framework& framework_;
  const bool parameters_are_cut_;
  const std::vector<std::int64_t> elements_;  ///< by tensor that this rank updates; empty: all
  GraphBuilder& graph_;
  PresentValues& values_;
  PresentGradients& gradients_;
  std::vector<InstanceId> state_;      ///< by tensor
  std::vector<OpId> complete_after_;   ///< by tensor: the op whose backward adds the last gradient
  std::vector<bool> is_updated_;       ///< by tensor
  Tensor part_;                        ///< of the parameter last asked for, if they are cut
  Operation operation_;                ///< the update being put together
  std::vector<InstanceId> now_named_;  ///< temporaries of it that a variable keeps
  std::vector<InstanceId> named_;      ///< those of the update before
};

}  // namespace tidemark
