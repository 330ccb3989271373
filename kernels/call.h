// One call of a kernel: all that it needs to know, bound once and run every step.
#pragma once

#include <vector>

#include "base/error.h"
#include "kernels/array.h"

namespace tidemark {

enum class Pass : std::uint8_t {
  Forward,
  Backward,
  Fill,        ///< outputs[0] = 1: the loss's own gradient
  Accumulate,  ///< outputs[0] = Σ inputs, each summed over the axes where it is longer
  Subtract,    ///< outputs[0] = inputs[0] − inputs[1]: a coupling undone
  Quantize,    ///< outputs[0] = codes of inputs[0]
  MoveRange,   ///< what was noted moves the quantizer's ranges; inputs[0] has the value's dtype
  Dequantize,  ///< outputs[0] = inputs[0], whose elements are codes
  Update,      ///< the optimizer, on one parameter
};

inline constexpr std::array passes = {Named{Pass::Forward, std::string_view("forward")},
                                      Named{Pass::Backward, std::string_view("backward")},
                                      Named{Pass::Fill, std::string_view("fill")},
                                      Named{Pass::Accumulate, std::string_view("accumulate")},
                                      Named{Pass::Subtract, std::string_view("subtract")},
                                      Named{Pass::Quantize, std::string_view("quantize")},
                                      Named{Pass::MoveRange, std::string_view("move range")},
                                      Named{Pass::Dequantize, std::string_view("dequantize")},
                                      Named{Pass::Update, std::string_view("update")}};
static_assert(is_in_order(passes));

/// Attributes of the op, with their defaults filled in.
struct Settings {
  bool causal = false;       ///< attention: a token sees only itself and those before it
  bool tanh_approx = false;  ///< GELU in its tanh form
  std::int64_t window = 0;   ///< attention: only that many last tokens; pooling: kernel
  std::int64_t stride = 1, padding = 0, groups = 1;
  double probability = 0;  ///< of dropping
  double factor = 1;       ///< of Scale, and of attention's scores beside 1 / √d
  double epsilon = 1e-5;
  std::int64_t axis = 0, offset = 0;  ///< of formulas
  bool neighbours = false;  ///< a rotation turns elements beside each other, not half a row apart
  bool l2_decay = false;    ///< of an update: weight decay is a term of the gradient
  bool masters = false;     ///< and the state begins with an fp32 copy of the parameter
};

/// How one tensor is quantized (Mesa, arXiv 2111.11124): by groups of channels, or by heads.
struct Quantizer {
  std::int64_t groups = 1;
  std::int64_t group_axis = 0;   ///< the axis of the value that is divided into groups
  GroupRange* ranges = nullptr;  ///< by group; in the backend's memory, zeros at first
  bool wraps = false;            ///< as the released code: a code above the largest wraps around
  bool knows_min_max = false;    ///< whoever wrote the value has noted them
  int bits = 8;                  ///< of a code: 2, 4 or 8
  bool continues = false;        ///< the ranges have been updated in this step before
  bool delayed = false;          ///< by the range of the last step; MoveRange comes first
  bool has_codes = false;        ///< whoever wrote the value has written the codes: not at first
};

/// The groups of a dense value of this shape, or of its codes, whose first element is `first`.
inline Groups groups_of(const Quantizer& quantizer, const Shape& shape, const std::byte* first) {
  Groups groups{quantizer.ranges, first, 1, quantizer.groups, quantizer.bits};
  if (shape.rank() == 0) return groups;
  const auto axis = static_cast<std::size_t>(quantizer.group_axis);
  CHECK(axis < shape.rank() && shape[axis] % quantizer.groups == 0);
  groups.stretch = shape[axis] / quantizer.groups;
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) groups.stretch *= shape[i];
  return groups;
}

/// What `quantizer` made of a dense value of this shape, as elements that kernels decode.
inline Array coded(std::byte* codes, const Shape& shape, const Quantizer& quantizer) {
  Array array = array_at(codes, DType::UInt8, dense(shape));
  array.groups = groups_of(quantizer, shape, codes);
  return array;
}

/// What changes from step to step.
struct StepState {
  std::int64_t number = 0;  ///< counts from 0
  std::uint64_t seed = 0;   ///< random ops: numbers follow from (seed, number, key, element)
  bool updates = true;      ///< false: the optimizer leaves everything as it is
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
};

struct Call {
  Pass pass = Pass::Forward;
  OpKind kind = OpKind::View;              ///< of Forward and Backward
  Formula formula{};                       ///< of an opaque op
  Optimizer optimizer = Optimizer::AdamW;  ///< of Update
  Settings settings;
  /// The op's operands in its order. Backward: those that were saved; the others are absent, but
  /// their shapes and dtypes stand.
  std::vector<Array> inputs, outputs;
  /// Backward: gradients of the outputs, absent = zero, and those of the inputs that are to be
  /// written; absent = not wanted, or it shares the memory of the output's.
  std::vector<Array> d_outputs, d_inputs;
  std::vector<Rearrangement> moves;  ///< of ops that only move elements: one per piece
  std::uint64_t key = 0;             ///< random ops, Quantize
  Quantizer quantizer;               ///< of Quantize and MoveRange
  // Update: inputs {a gradient per parameter}, outputs {of each the parameter, its state, if its
  // optimizer keeps one, temporaries}; optimizer.h says what a state holds.
};

}  // namespace tidemark
