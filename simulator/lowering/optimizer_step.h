// The optimizer's part of a step: the state that stays between steps, and the update at its end.
#pragma once

#include "simulator/lowering/gradients.h"
#include "simulator/lowering/values.h"

namespace tidemark {

class OptimizerStep {
 public:
  OptimizerStep(const Trace& trace, const Needs& needs, ScheduleWriter& writer, Values& values,
                Gradients& gradients);

  /// States, moving averages, buckets, and gradients that persist.
  void place_state();
  /// Updates every parameter that got a gradient, and frees the gradients that do not persist.
  void run();

 private:
  void place_state(TensorId parameter, bool learns);
  bool is_updated(std::size_t t) const;
  void add_update(TensorId parameter);
  void update();
  int temporaries_per_parameter() const;

  const Trace& trace_;
  const Needs& needs_;
  const Framework& framework_;
  ScheduleWriter& writer_;
  Values& values_;
  Gradients& gradients_;
  std::vector<BufferId> state_;      ///< by tensor
  std::vector<BufferId> temporary_;  ///< of the update being put together
};

}  // namespace tidemark
