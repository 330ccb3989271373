// How far from exact a plan makes gradients: by codes that stand for saved tensors, and by
// operators whose gradient is another function's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/needs.h"

namespace tidemark {

/// What gradients read each storage as, by tensor: "linear.x0", "matmul.x0+softmax.y0"; "" of what
/// none reads, or of what may not be kept in codes.
std::vector<std::string> readers_in_codes(const Trace& trace, const Needs& needs);

/// Of one trace's storages and ops, each by itself: E‖g − exact‖² / ‖exact‖² over the gradients of
/// all parameters together. To first order these add up, because noise of different tensors is
/// independent, and fall with the square of the number of levels. Measured on small networks
/// (small_networks.json): the mean over them of what all tensors with the same readers make
/// together, shared out evenly among those of this trace.
class GradientNoise {
 public:
  GradientNoise(const Trace& trace, const Needs& needs);

  /// Of a storage in codes of so many bits; infinite where its readers were not measured.
  double of_codes(TensorId storage, int bits) const;
  /// Of an op whose gradient is approximate; 0 of all others. Not noise but bias: it is the same in
  /// each step.
  double of_op(OpId op) const { return of_op_[index(op)]; }

 private:
  std::vector<double> of_unit_step_;  ///< by storage: with codes of one level above 0
  std::vector<double> of_op_;
};

/// Where the numbers are from, in words.
std::string_view source_of_noise();

}  // namespace tidemark
