// The table of operators: what each one's gradient needs, what it launches, whether it can be
// undone. Adding an operator means adding its row here, its kernels and its tests.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/names.h"

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
  Sigmoid,
  Relu,
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
  // between the tensor-parallel ranks
  Replicate,
  AllReduce,
  AllGather,
  ReduceScatter,
  Scatter,
  // between pipeline stages
  Receive,
  Send,
  // loss
  NllLoss,
  VocabularyLoss,
  // whatever else: its row is its own (opaque.h)
  Opaque,
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

/// What bounds an op's time and which arithmetic units it uses.
enum class Work : std::uint8_t {
  None,            ///< a view: nothing runs
  Linear,          ///< x · wᵀ, on tensor cores where the dtype has them; so are the next three
  BatchedProduct,  ///< a · b, for each of the leading dimensions
  Convolution,     ///< as the product of its windows with its filters
  Attention,       ///< scores and their weighted sum without writing the scores
  Elementwise,     ///< memory traffic
  GatherRows,      ///< reads only the rows of a table that indices name
  PickOnePerRow,   ///< reads one element of each row of input 0, which input 1 names
  Exchange,        ///< what ranks send each other
  Opaque,          ///< what the op's own row says
};
constexpr bool is_product(Work work) { return work >= Work::Linear && work <= Work::Attention; }

/// Where the gradient of an input comes from, and what the kernels that make it move. They read
/// the gradients of the outputs and what the rule needs, and write this gradient, each once.
struct GradientRule {
  Flow flow = Flow::None;
  Operands needs = 0;   ///< held from the forward on
  Operands unread = 0;  ///< of these: an autograd node holds them, but their values are not read
  int kernels = 1;      ///< 0: the kernel of the input before writes this gradient, too
  int passes = 0;       ///< what is read and written on the way, in tensors of the output's size
  Operands over = 0;    ///< of these: in whose memory the gradient is written
};

struct OpRow {
  OpKind value;
  std::string_view name;
  std::array<GradientRule, 3> gradients;  ///< by input; the last rule repeats for further inputs
  Work work = Work::Elementwise;
  int kernels = 1;  ///< that an eager framework launches in the forward
  int passes = 0;   ///< that these read and write beside inputs and outputs, in outputs' sizes
  bool inverts_input0 = false;  ///< input 0 = output 0 − input 1
  bool is_random = false;       ///< may run again only with its counter-based key

  Operands places = 0;     ///< whole numbers that say where something is
  Operands raw_bytes = 0;  ///< masks and packed codes
  /// Mesa (arXiv 2111.11124): operands that its layers keep in eight bits. Statistics per row,
  /// masks and weights stay as they are.
  Operands quantized = 0;
  /// The forward can note minimum and maximum of what it writes, so that making codes of it needs
  /// no pass to find them.
  bool notes_min_max = false;
};

namespace rules {
constexpr Operands x0 = input_bit(0), x1 = input_bit(1), x2 = input_bit(2), x3 = input_bit(3);
constexpr Operands y0 = output_bit(0), y1 = output_bit(1), y2 = output_bit(2), y3 = output_bit(3);

constexpr GradientRule none{};
constexpr GradientRule alias{Flow::Alias};
constexpr GradientRule reduced{Flow::Reduced};
constexpr GradientRule fresh{Flow::Fresh};
constexpr GradientRule with_the_one_before{.flow = Flow::Fresh, .kernels = 0};
constexpr GradientRule needs(Operands operands) { return {Flow::Fresh, operands}; }
constexpr GradientRule composed(GradientRule rule, int kernels, int passes) {
  rule.kernels = kernels, rule.passes = passes;
  return rule;
}
constexpr GradientRule in_place_of(Operands over, GradientRule rule) {
  rule.over = over;
  return rule;
}
using Rules = std::array<GradientRule, 3>;
constexpr Rules all(GradientRule rule) { return {rule, rule, rule}; }
/// One kernel, or sequence of them, writes all that are wanted.
constexpr Rules together(GradientRule rule) {
  const GradientRule other{.flow = rule.flow, .needs = rule.needs, .kernels = 0};
  return {rule, other, other};
}
constexpr Rules only_first(GradientRule rule) { return {rule, none, none}; }
}  // namespace rules

/// Sources: torch/csrc derivative formulas (PyTorch 1.13 and 2.6) for what is needed, and for the
/// kernels of what a model's code composes (transformers' modeling_llama.py and activations.py,
/// timm's drop.py of 2021); arXiv 2406.16282 section 4 for the Ms- and Re- rows.
inline constexpr std::array op_rows = [] {
  using namespace rules;
  using enum OpKind;
  // q, k, v, bias, output, log-sum-exp: the weights are made again, so all that made them stays.
  // Its two kernels both read the gradient of the output.
  constexpr auto attention = composed(needs(x0 | x1 | x2 | x3 | y0 | y1), 2, 1);
  return std::array{
      // inputs: x, weight, bias
      OpRow{.value = Linear,
            .name = "linear",
            .gradients = {needs(x1), needs(x0), fresh},
            .work = Work::Linear,
            .quantized = x0},
      OpRow{.value = MatMul,
            .name = "matmul",
            .gradients = {needs(x1), needs(x0), none},
            .work = Work::BatchedProduct,
            .quantized = x0 | x1},
      OpRow{.value = Conv2d,
            .name = "conv2d",
            .gradients = {needs(x1), needs(x0), fresh},
            .work = Work::Convolution},
      OpRow{.value = FlashAttention,
            .name = "flash_attention",
            .gradients = together(attention),
            .work = Work::Attention},
      // x, weight, bias → y, mean, 1/std
      OpRow{.value = LayerNorm,
            .name = "layer_norm",
            .gradients = {needs(x0 | x1 | y1 | y2), needs(x0 | y1 | y2), with_the_one_before},
            .quantized = x0,
            .notes_min_max = true},
      // x, weight → y, 1/rms, and where composed the normalized x. Composed: x², its mean, + ε,
      // rsqrt, x · rsqrt, · weight; back: dy · w; its products with rsqrt and, summed over a row,
      // with x; three kernels of a number per row; mean; x¹, · 2, · gradient; the sum of both ways.
      OpRow{.value = RmsNorm,
            .name = "rms_norm",
            .gradients = {composed(needs(x0 | x1 | y1), 12, 16),
                          composed(needs(x0 | y1 | y2), 2, 2), none},
            .kernels = 6,
            .passes = 4,
            .quantized = x0,
            .notes_min_max = true},
      OpRow{.value = MsLayerNorm,
            .name = "ms_layer_norm",
            .gradients = only_first(needs(y0 | y1)),
            .quantized = y0,
            .notes_min_max = true},
      OpRow{.value = MsRmsNorm,
            .name = "ms_rms_norm",
            .gradients = only_first(needs(y0 | y1)),
            .quantized = y0,
            .notes_min_max = true},
      OpRow{.value = Gelu,
            .name = "gelu",
            .gradients = all(needs(x0)),
            .quantized = x0,
            .notes_min_max = true},
      // x → y, tanh(…), x/2, 1 + tanh(…): tanh-GELU written with elementwise kernels. x³, · c, + x,
      // · c, tanh, x/2, 1 + tanh, their product: 10 reads and 8 writes. Back: two products, tanh's
      // own, · c, · c, x², · 3, · gradient, x/2's, two sums: 17 reads and 11 writes.
      OpRow{.value = GeluComposed,
            .name = "gelu_composed",
            .gradients = all(composed(needs(x0 | y1 | y2 | y3), 11, 22)),
            .kernels = 8,
            .passes = 13,
            .quantized = x0 | y1 | y2 | y3,
            .notes_min_max = true},
      OpRow{.value = Silu,
            .name = "silu",
            .gradients = all(needs(x0)),
            .quantized = x0,
            .notes_min_max = true},
      OpRow{.value = Tanh,
            .name = "tanh",
            .gradients = all(needs(y0)),
            .quantized = y0,
            .notes_min_max = true},
      OpRow{.value = Sigmoid,
            .name = "sigmoid",
            .gradients = all(needs(y0)),
            .quantized = y0,
            .notes_min_max = true},
      // The sign of y is that of x, so y serves, which the next product keeps, too.
      OpRow{.value = Relu,
            .name = "relu",
            .gradients = all(needs(y0)),
            .quantized = y0,
            .notes_min_max = true},
      // x → y, 2-bit codes
      OpRow{.value = ReGelu2, .name = "regelu2", .gradients = all(needs(y1)), .raw_bytes = y1},
      OpRow{.value = ReSilu2, .name = "resilu2", .gradients = all(needs(y1)), .raw_bytes = y1},
      OpRow{.value = Softmax,
            .name = "softmax",
            .gradients = all(needs(y0)),
            .quantized = x0 | y0,
            .notes_min_max = true},
      OpRow{.value = LogSoftmax, .name = "log_softmax", .gradients = all(needs(y0))},
      OpRow{.value = Add,
            .name = "add",
            .gradients = all(reduced),
            .inverts_input0 = true,
            .notes_min_max = true},
      OpRow{.value = Mul,
            .name = "mul",
            .gradients = {needs(x1), needs(x0), none},
            .quantized = x0 | x1,
            .notes_min_max = true},
      OpRow{.value = Scale, .name = "scale", .gradients = only_first(fresh), .notes_min_max = true},
      // A sum, then a division of it.
      OpRow{.value = Average,
            .name = "average",
            .gradients = together(fresh),
            .kernels = 2,
            .passes = 2},
      // x → y, mask
      OpRow{.value = Dropout,
            .name = "dropout",
            .gradients = all(needs(y1)),
            .is_random = true,
            .raw_bytes = y1},
      // A mask of a number per sample in two kernels; x / (1 − p), · mask; back the same.
      OpRow{.value = DropPath,
            .name = "drop_path",
            .gradients = all(composed(needs(y1), 2, 2)),
            .kernels = 4,
            .passes = 2,
            .is_random = true,
            .raw_bytes = y1},
      OpRow{.value = Cast, .name = "cast", .gradients = all(fresh)},
      // −x₂, its concatenation with x₁, · cos, · sin, their sum. Back: · cos, · sin, −, each half
      // put into zeros, two sums.
      OpRow{.value = Rope,
            .name = "rope",
            .gradients = only_first(composed(needs(x1 | x2), 9, 13)),
            .kernels = 5,
            .passes = 8},
      OpRow{
          .value = View, .name = "view", .gradients = all(alias), .work = Work::None, .kernels = 0},
      // Back: zeros, then the selected part of them.
      OpRow{.value = Select,
            .name = "select",
            .gradients = all(composed(fresh, 2, 1)),
            .work = Work::None,
            .kernels = 0},
      OpRow{.value = Split,
            .name = "split",
            .gradients = all(fresh),
            .work = Work::None,
            .kernels = 0},
      OpRow{.value = Copy, .name = "copy", .gradients = all(fresh)},
      OpRow{.value = Concat, .name = "concat", .gradients = all(alias)},
      OpRow{.value = RepeatHeads, .name = "repeat_heads", .gradients = all(fresh)},
      // indices, table. Back: zeros, then the rows that were read.
      OpRow{.value = Embedding,
            .name = "embedding",
            .gradients = {none, composed(needs(x0), 2, 1), none},
            .work = Work::GatherRows,
            .places = x0},
      OpRow{.value = MeanPool, .name = "mean_pool", .gradients = all(fresh)},
      OpRow{.value = MaxPool, .name = "max_pool", .gradients = all(needs(y1)), .places = y1},
      // Each rank has x; the parts that its own weights make of the gradient are summed.
      OpRow{.value = Replicate,
            .name = "replicate",
            .gradients = only_first(fresh),
            .work = Work::None,
            .kernels = 0},
      // Parts of a sum → the sum, on each rank. All of them use it alike, so its gradient is that
      // of each part.
      OpRow{.value = AllReduce,
            .name = "all_reduce",
            .gradients = only_first(alias),
            .work = Work::Exchange},
      // The rank's part along one dimension → all parts. Back: reduced and scattered.
      OpRow{.value = AllGather,
            .name = "all_gather",
            .gradients = only_first(fresh),
            .work = Work::Exchange},
      // Parts of a sum → the rank's part of the sum along one dimension. Back: gathered.
      OpRow{.value = ReduceScatter,
            .name = "reduce_scatter",
            .gradients = only_first(fresh),
            .work = Work::Exchange},
      // What each rank has → its own part along one dimension. Back: gathered.
      OpRow{.value = Scatter, .name = "scatter", .gradients = only_first(fresh)},
      // A number of no use, which only has a gradient → what the stage before sends. Back: its
      // gradient is sent there.
      OpRow{.value = Receive,
            .name = "receive",
            .gradients = only_first(fresh),
            .work = Work::Exchange},
      // x, for the next stage → a number of no use, as a loss. Back: x's gradient is received.
      OpRow{.value = Send, .name = "send", .gradients = only_first(fresh), .work = Work::Exchange},
      // log-probabilities, targets → loss, total weight
      OpRow{.value = NllLoss,
            .name = "nll_loss",
            .gradients = only_first({.flow = Flow::Fresh, .needs = x0 | x1 | y1, .unread = x0}),
            .work = Work::PickOnePerRow,
            .places = x1},
      // logits of the rank's part of the vocabulary, targets → loss, softmax (in place, or fp32
      // beside them), whether a target is another rank's, targets from the part's first on. Back:
      // less one where the target is, · gradient (Megatron-LM's tensor_parallel/cross_entropy.py).
      OpRow{.value = VocabularyLoss,
            .name = "vocabulary_loss",
            .gradients = only_first(in_place_of(y1, composed(needs(y1 | y2 | y3), 2, 0))),
            .kernels = 7,
            .raw_bytes = y2},
      OpRow{.value = Opaque, .name = "opaque", .gradients = all(none), .work = Work::Opaque},
  };
}();
static_assert(is_in_order(op_rows));

constexpr const OpRow& row_of(OpKind kind) { return op_rows[static_cast<std::size_t>(kind)]; }
constexpr std::string_view to_string(OpKind kind) { return row_of(kind).name; }
constexpr bool is_view(OpKind kind) { return row_of(kind).work == Work::None; }

/// Of the operands that Mesa quantizes, those that the op's backward can decode while it loads
/// them, so that the value itself never lies in memory again. Products read values, and so do the
/// kernels of opaque ops.
constexpr Operands decoded_operands(OpKind kind) {
  return is_product(row_of(kind).work) ? 0 : row_of(kind).quantized;
}

}  // namespace tidemark
