// Runs a schedule for real: the arena is allocated once, each step issues the schedule in its own
// order, and what comes back is the loss, a measured timeline and, if asked for, the gradients.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "profiler/binding.h"
#include "simulator/arena.h"
#include "simulator/strategies/strategy.h"
#include "simulator/timeline.h"

namespace tidemark::profiler {

struct ReplayedStep {
  double loss = 0;
  Timeline timeline;
};

class Replay {
 public:
  /// `planned` must apply (no refusal). InputError if no kernel can run one of its ops, or the
  /// backend has no room for the arena. Parameters, inputs and optimizer state start as zeros.
  Replay(PlannedStep planned, Backend& backend);

  const Trace& trace() const { return *planned_.trace; }
  const Schedule& schedule() const { return schedule_; }
  const Arena& arena() const { return plan_; }
  /// What the backend gave for it.
  Bytes arena_memory() const { return memory_->size(); }
  /// Memory outside of the arena: what the kernels' scratch takes.
  Bytes workspace() const;
  Bytes host_memory() const { return host_->size(); }

  /// Sets a parameter or an input: size(tensor) bytes, row-major.
  void write(TensorId tensor, const void* from);
  /// The part from the tensor's start to its end, the last time maybe cut.
  void write_again_and_again(TensorId tensor, std::span<const std::byte> part);
  void read(TensorId tensor, void* to) const;

  /// Gradients of parameters are copied to the host at the end of each step's backward.
  void keep_gradients();
  /// Of the last step, row-major; empty if the parameter got none.
  std::vector<double> gradient(TensorId parameter) const;

  ReplayedStep step(const StepState& state);

 private:
  Replay(PlannedStep planned, Backend& backend, const JointGraph& graph);
  void place_host_copies();
  void issue(std::uint32_t step);
  void run(std::uint32_t step, const Run& run);
  void copy_out_gradients(const Run& update);
  void clear_gradients();
  std::byte* address(BufferId buffer) const;
  std::byte* host_address(TensorId storage) const;
  BufferId persistent_value(TensorId tensor) const;

  PlannedStep planned_;
  Backend& backend_;
  Schedule schedule_;
  Arena plan_;
  std::unique_ptr<Memory> memory_, host_;
  std::vector<std::int64_t> host_offset_;  ///< by storage: of its copy; the loss comes first
  std::int64_t host_size_ = 0;
  std::optional<Binding> binding_;
  std::vector<Layout> layouts_;
  std::vector<BufferId> gradient_buffer_;  ///< by parameter: what the optimizer reads
  std::unique_ptr<Memory> gradients_;      ///< on the host, one behind the other
};

}  // namespace tidemark::profiler
