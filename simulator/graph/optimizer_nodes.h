// The optimizer's part of the joint graph: the state that stays between steps, and the update of
// every parameter at the step's end.
#pragma once

#include "simulator/graph/present_gradients.h"
#include "simulator/graph/present_values.h"

namespace tidemark {

class OptimizerNodes {
 public:
  OptimizerNodes(const Trace& trace, const Needs& needs, GraphBuilder& graph, PresentValues& values,
                 PresentGradients& gradients);

  /// States, moving averages, buckets, and gradients that persist.
  void place_state();
  /// Updates every parameter that got a gradient, and releases the gradients that do not persist.
  void append();

 private:
  void place_state(TensorId parameter, bool learns);
  bool is_updated(std::size_t t) const;
  void add_update(TensorId parameter);
  void add_recorded_workspace();
  void update();
  int temporaries_per_parameter() const;

  const Trace& trace_;
  const Needs& needs_;
  const Framework& framework_;
  GraphBuilder& graph_;
  PresentValues& values_;
  PresentGradients& gradients_;
  std::vector<InstanceId> state_;  ///< by tensor
  Operation operation_;            ///< the update being put together
};

}  // namespace tidemark
