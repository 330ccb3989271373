// The words in which shape_rules.cpp says what the operands of an op must look like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "traces/trace.h"

namespace tidemark {

namespace operand_bits {  // bit positions of `Operands`
inline constexpr int in0 = 0, in1 = 1, in2 = 2, in3 = 3;
inline constexpr int out0 = 16, out1 = 17, out2 = 18, out3 = 19;
}  // namespace operand_bits

/// The operands of one op and the first demand that they fail. Every demand returns whether it is
/// met, so that a rule is a chain of && in which the later ones may rely on the earlier.
class Fit {
 public:
  Fit(const Trace& trace, const Op& op) : trace_(trace), op_(op) {}

  const Shape& operator[](int bit) const { return tensor(bit).shape; }
  const Tensor& tensor(int bit) const { return trace_[operand(trace_, op_, bit)]; }
  const Trace& trace() const { return trace_; }
  const Op& op() const { return op_; }
  const StepOptions& step() const { return trace_.step; }
  bool has(int bit) const { return operand(trace_, op_, bit) != no_tensor; }
  std::span<const TensorId> inputs() const { return trace_.inputs(op_); }
  std::span<const TensorId> outputs() const { return trace_.outputs(op_); }
  const Shape& shape(TensorId id) const { return trace_[id].shape; }
  /// The attribute as a whole number in [0, 2^20], or −1.
  std::int64_t whole(AttributeKey key, double otherwise) const;

  /// "in1 is [5, 4]; need [out, in] beside in0 [2, 8]" unless `met`.
  bool need(bool met, int bit, std::string_view what);
  bool same(int bit, const Shape& shape);
  /// What is wrong is not an operand.
  bool require(bool met, std::string_view defect) {
    if (!met) defect_ = defect;
    return met;
  }
  bool same_if_present(int bit, const Shape& shape) { return !has(bit) || same(bit, shape); }
  bool has_rows(int bit) { return need((*this)[bit].rank() > 0, bit, "at least one dimension"); }

  const std::string& defect() const { return defect_; }

 private:
  const Trace& trace_;
  const Op& op_;
  std::string defect_;
};

using Dims = std::span<const std::int64_t>;

bool divides(std::int64_t divisor, std::int64_t n);

/// Do dimensions of `small` broadcast to `large`? NumPy's rule, and one more: the first dimension
/// may repeat, as the window masks [windows, 1, t, t] over scores [batch · windows, heads, t, t].
bool spreads_over(Dims small, Dims large);

/// Is `large` what a and b broadcast to, with no dimension that neither of them has?
bool broadcasts(Dims a, Dims b, Dims large);

}  // namespace tidemark
