// The table of operators: what each one's gradient needs, what it launches, whether it can be
// undone. Adding an operator means adding its row here, its kernels and its tests.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "traces/names.h"

namespace tidemark {

enum class OpKind : std::uint8_t {
  // matrix products
  Linear,
  MatMul,
  Conv2d,
  FlashAttention,
  // norms
  LayerNorm,
  RmsNorm,
  MsLayerNorm,
  MsRmsNorm,
  // activations
  Gelu,
  GeluComposed,
  Silu,
  Tanh,
  ReGelu2,
  ReSilu2,
  // elementwise
  Softmax,
  LogSoftmax,
  Add,
  Mul,
  Scale,
  Average,
  Dropout,
  DropPath,
  Cast,
  Rope,
  // data movement
  View,
  Select,
  Split,
  Copy,
  Concat,
  RepeatHeads,
  Embedding,
  MeanPool,
  MaxPool,
  // loss
  NllLoss,
};

/// Which operands of an op: bit i is input i, bit 16 + j is output j.
using Operands = std::uint32_t;
constexpr Operands input_bit(int i) { return Operands{1} << i; }
constexpr Operands output_bit(int j) { return Operands{1} << (16 + j); }

/// Where the gradient of an input comes from.
enum class Flow : std::uint8_t {
  None,     ///< the input has no gradient (indices, targets, constants)
  Alias,    ///< a view of the gradient of the output
  Reduced,  ///< the gradient of the output itself; new memory only where it must be summed over
            ///< broadcast dimensions or cast
  Fresh,    ///< it is written to memory of the input's size
};

struct GradientRule {
  Flow flow = Flow::None;
  Operands needs = 0;
};

/// What bounds an op's time and which arithmetic units it uses.
enum class Work : std::uint8_t {
  None,         ///< a view: nothing runs
  MatrixUnits,  ///< tensor cores where the dtype has them
  Elementwise,  ///< memory traffic
  Gather,       ///< reads only the rows that the indices name
};

struct OpRow {
  OpKind value;
  std::string_view name;
  std::array<GradientRule, 3> gradients;  ///< by input; the last rule repeats for further inputs
  Work work = Work::Elementwise;
  int forward_kernels = 1;  ///< kernels that an eager framework launches
  int backward_kernels = 1;
  bool inverts_input0 = false;  ///< input 0 = output 0 − input 1
  bool is_random = false;       ///< may run again only with its counter-based key
};

namespace rules {
constexpr GradientRule none{};
constexpr GradientRule alias{Flow::Alias, 0};
constexpr GradientRule reduced{Flow::Reduced, 0};
constexpr GradientRule fresh{Flow::Fresh, 0};
constexpr GradientRule needs(Operands operands) { return {Flow::Fresh, operands}; }
constexpr std::array<GradientRule, 3> all(GradientRule rule) { return {rule, rule, rule}; }
constexpr Operands x0 = input_bit(0), x1 = input_bit(1), x2 = input_bit(2), x3 = input_bit(3);
constexpr Operands y0 = output_bit(0), y1 = output_bit(1), y2 = output_bit(2), y3 = output_bit(3);
}  // namespace rules

/// Sources: torch/csrc derivative formulas (PyTorch 1.13 and 2.6) for what is needed; arXiv
/// 2406.16282 section 4 for the Ms- and Re- rows.
inline constexpr std::array op_rows = [] {
  using namespace rules;
  using enum OpKind;
  // q, k, v, bias, output, log-sum-exp: the weights are made again, so all that made them stays
  constexpr auto attention = needs(x0 | x1 | x2 | x3 | y0 | y1);
  return std::array{
      // inputs: x, weight, bias
      OpRow{Linear, "linear", {needs(x1), needs(x0), fresh}, Work::MatrixUnits, 1, 3},
      OpRow{MatMul, "matmul", {needs(x1), needs(x0), none}, Work::MatrixUnits, 1, 2},
      OpRow{Conv2d, "conv2d", {needs(x1), needs(x0), fresh}, Work::MatrixUnits, 1, 3},
      OpRow{FlashAttention, "flash_attention", all(attention), Work::MatrixUnits, 1, 2},
      // x, weight, bias → y, mean, 1/std
      OpRow{LayerNorm,
            "layer_norm",
            {needs(x0 | x1 | y1 | y2), needs(x0 | y1 | y2), fresh},
            Work::Elementwise,
            1,
            2},
      // x, weight → y, 1/rms, and where composed of two kernels the normalized x
      OpRow{RmsNorm,
            "rms_norm",
            {needs(x0 | x1 | y1), needs(x0 | y1 | y2), none},
            Work::Elementwise,
            6,
            8},
      OpRow{MsLayerNorm, "ms_layer_norm", {needs(y0 | y1), none, none}},
      OpRow{MsRmsNorm, "ms_rms_norm", {needs(y0 | y1), none, none}},
      OpRow{Gelu, "gelu", all(needs(x0))},
      // x → y, tanh(…), x/2, 1 + tanh(…): tanh-GELU written with elementwise kernels
      OpRow{GeluComposed, "gelu_composed", all(needs(x0 | y1 | y2 | y3)), Work::Elementwise, 8, 10},
      OpRow{Silu, "silu", all(needs(x0))},
      OpRow{Tanh, "tanh", all(needs(y0))},
      // x → y, 2-bit codes
      OpRow{ReGelu2, "regelu2", all(needs(y1))},
      OpRow{ReSilu2, "resilu2", all(needs(y1))},
      OpRow{Softmax, "softmax", all(needs(y0))},
      OpRow{LogSoftmax, "log_softmax", all(needs(y0))},
      OpRow{Add, "add", all(reduced), Work::Elementwise, 1, 0, true},
      OpRow{Mul, "mul", {needs(x1), needs(x0), none}, Work::Elementwise, 1, 2},
      OpRow{Scale, "scale", {fresh, none, none}},
      OpRow{Average, "average", all(fresh), Work::Elementwise, 2, 1},
      // x → y, mask
      OpRow{Dropout, "dropout", all(needs(y1)), Work::Elementwise, 1, 1, false, true},
      OpRow{DropPath, "drop_path", all(needs(y1)), Work::Elementwise, 4, 2, false, true},
      OpRow{Cast, "cast", all(fresh)},
      OpRow{Rope, "rope", {needs(x1 | x2), none, none}, Work::Elementwise, 5, 5},
      OpRow{View, "view", all(alias), Work::None, 0, 0},
      OpRow{Select, "select", all(fresh), Work::None, 0, 2},
      OpRow{Split, "split", all(fresh), Work::None, 0, 1},
      OpRow{Copy, "copy", all(fresh)},
      OpRow{Concat, "concat", all(alias), Work::Elementwise, 1, 0},
      OpRow{RepeatHeads, "repeat_heads", all(fresh)},
      // indices, table
      OpRow{Embedding, "embedding", {none, needs(x0), none}, Work::Gather, 1, 2},
      OpRow{MeanPool, "mean_pool", all(fresh)},
      OpRow{MaxPool, "max_pool", all(needs(y1))},
      // log-probabilities, targets → loss, total weight
      OpRow{NllLoss, "nll_loss", {needs(x0 | x1 | y1), none, none}},
  };
}();
static_assert(is_in_order(op_rows));

constexpr const OpRow& row_of(OpKind kind) { return op_rows[static_cast<std::size_t>(kind)]; }
constexpr std::string_view to_string(OpKind kind) { return row_of(kind).name; }
constexpr bool is_view(OpKind kind) { return row_of(kind).work == Work::None; }
constexpr GradientRule gradient_rule(OpKind kind, std::size_t input) {
  return row_of(kind).gradients[input < 3 ? input : 2];
}

}  // namespace tidemark
