// The judge's arithmetic: one number in place of each tensor's bytes.
//
//   value      a number per storage and write         x ≠ f(x) ≠ g(x)
//   gradient   the sum of what its readers send back  f and g read x:  dx = 1234 + 5678
//   alias      the same number, or one made from it   dx = dy for y = view(x)
//
// A schedule that adds a contribution twice, forgets one, or reads memory too late ends up with
// another number, and no rule has to name the mistake.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace tidemark::judge {

class Numbers {
 public:
  explicit Numbers(const Trace& trace);

  /// What a storage holds before the step.
  static std::uint64_t initial(TensorId storage);
  /// What the storage behind operand k of the op holds, inputs before and outputs after the op.
  std::uint64_t value(const Op& op, std::size_t k) const { return values_[op.first_operand + k]; }

  /// Does the loss depend on a trainable tensor through this one?
  bool has_gradient(TensorId tensor) const { return gradients_[index(tensor)] != 0; }
  /// The complete gradient; of the loss, what Seed writes.
  std::uint64_t gradient(TensorId tensor) const { return gradients_[index(tensor)]; }

  /// What an op's backward sends to the gradient of input k.
  struct Contribution {
    OpId op = no_op;        ///< no_op: it sends nothing
    bool is_fresh = false;  ///< in memory of its own; otherwise it lies in the gradient of output 0
    std::uint64_t number = 0;
  };
  const Contribution& contribution(const Op& op, std::size_t k) const {
    return sent_[op.first_operand + k];
  }
  /// All that the tensor gets, in the order in which a backward makes them.
  const std::vector<Contribution>& contributions(TensorId tensor) const {
    return received_[index(tensor)];
  }
  /// Does the op's backward write anything?
  bool has_backward(const Op& op) const;

  /// True if memory with this number is, or has as a part, the complete gradient of the tensor.
  bool holds_gradient(std::uint64_t number, TensorId tensor) const;

 private:
  void number_values();
  void find_required();
  void add_contributions(OpId op);

  const Trace& trace_;
  std::vector<std::uint64_t> values_;  // by operand
  std::vector<bool> required_;         // by tensor
  std::vector<std::uint64_t> gradients_;
  std::vector<Contribution> sent_;                   // by operand
  std::vector<std::vector<Contribution>> received_;  // by tensor
};

}  // namespace tidemark::judge
