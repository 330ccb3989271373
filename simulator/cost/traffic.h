// What the kernels of an op read and write in device memory: what its row of the table says, in
// bytes. Counts are doubles, because sums of them may exceed 64 bits.
#pragma once

#include <array>
#include <vector>

#include "simulator/needs.h"
#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

/// The kernels that write the gradient of one input, or of several at once.
struct GradientTraffic {
  std::size_t input;  ///< the first of them
  int kernels;
  double bytes;
  double elements;  ///< of the largest tensor that is read or written

  bool operator==(const GradientTraffic&) const = default;
};

/// Of one run, in a place of its own: there are as many as runs.
class GradientTraffics {
 public:
  void add(const GradientTraffic& kernels) { kernels_[count_++] = kernels; }
  GradientTraffic& back() { return kernels_[count_ - 1]; }
  const GradientTraffic* begin() const { return kernels_.data(); }
  const GradientTraffic* end() const { return kernels_.data() + count_; }

 private:
  std::array<GradientTraffic, 32> kernels_;  // as many as a mask of inputs has bits
  std::size_t count_ = 0;
};

class Traffic {
 public:
  /// All of them must outlive it.
  Traffic(const Trace& trace, const Needs& needs);

  /// What the row of an opaque op says, or where it says nothing, each operand once.
  double forward(const Op& op) const;
  int forward_kernels(const Op& op) const;
  /// Does such a run make any gradient of the op? Backward or WeightGradient.
  bool makes_gradients(Task task, OpId op) const { return gradients_in(task, op) != 0; }
  /// Are there runs of both kinds?
  bool splits_backward() const { return !of_weights_.empty(); }
  bool has_gradient(TensorId tensor) const { return has_gradient_[index(tensor)]; }
  /// By input. What the run reads as codes counts as codes.
  GradientTraffics backward(const Schedule& schedule, const Run& run) const;

 private:
  double bytes(TensorId tensor) const { return static_cast<double>(size(trace_[tensor]).count); }
  double elements(TensorId tensor) const {
    return static_cast<double>(numel(trace_[tensor].shape));
  }
  double bytes_of_passes(const Op& op, int passes) const;
  double saved_bytes(const Schedule& schedule, const Run& run, TensorId tensor) const;
  double incoming_bytes(const Op& op, std::size_t input) const;
  double written_bytes(const Op& op, std::size_t input) const;
  std::uint32_t gradients_in(Task task, OpId op) const;
  GradientTraffic opaque_backward(const Schedule& schedule, const Run& run) const;

  const Trace& trace_;
  const Needs& needs_;
  const std::vector<std::uint32_t> of_weights_;  ///< gradients_of_weights() of the trace
  std::vector<bool> has_gradient_;               ///< per tensor
  const bool adds_to_main_;                      ///< products do, to main gradients
};

}  // namespace tidemark
