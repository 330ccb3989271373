// The gradients that are present while the backward is written: which buffer each tensor's gradient
// is in, how many share it, and how contributions are summed.
#pragma once

#include "simulator/lowering/schedule_writer.h"
#include "simulator/plan.h"

namespace tidemark {

class Gradients {
 public:
  Gradients(const Trace& trace, const Plan& plan, ScheduleWriter& writer);

  /// Where the tensor's gradient is, or no_buffer.
  BufferId of(TensorId tensor) const { return slot_[index(tensor)]; }

  /// A parameter whose gradient stays between steps.
  void place(TensorId parameter);
  /// The loss's own gradient; `producer` computes the loss.
  void seed(OpId producer);
  /// Memory for one contribution to the tensor's gradient.
  BufferId allocate(TensorId tensor);
  /// One more input has this gradient for its own.
  void share(BufferId buffer) { ++references(buffer); }
  /// Adds a contribution to the tensor's gradient, or takes it over as the first.
  void contribute(TensorId tensor, BufferId contribution);
  /// The op that made the tensor has used its gradient.
  void drop(TensorId tensor);

 private:
  bool is_leaf(TensorId tensor) const { return trace_[tensor].trainable; }
  std::uint32_t& references(BufferId buffer);
  void unreference(BufferId buffer);
  void accumulate(BufferId into, BufferId contribution, BufferId result);
  bool adds_in_place(TensorId tensor);
  TensorId held_name(BufferId buffer) const;
  void hold(BufferId buffer, TensorId tensor);

  const Trace& trace_;
  const Plan& plan_;
  const Framework& framework_;
  ScheduleWriter& writer_;
  std::vector<BufferId> slot_;             ///< by tensor
  std::vector<std::uint32_t> references_;  ///< by buffer: gradients that share it
  std::vector<TensorId> held_name_;        ///< by buffer: the coupling state whose gradient a
                                           ///< variable of published code calls it
};

}  // namespace tidemark
