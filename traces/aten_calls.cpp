// The names are those of PyTorch 2.4 to 2.9 under __torch_dispatch__ below autograd: of a linear
// with a bias addmm, of one without mm.
#include "traces/aten_calls.h"

#include <array>

#include "traces/pair_ops.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 2> products = {"aten.mm.default", "aten.addmm.default"};
constexpr std::array<std::string_view, 1> batched = {"aten.bmm.default"};
constexpr std::array<std::string_view, 4> attention = {
    "aten._scaled_dot_product_flash_attention.default",
    "aten._scaled_dot_product_efficient_attention.default",
    "aten._scaled_dot_product_cudnn_attention.default",
    "aten._scaled_dot_product_flash_attention_for_cpu.default"};
constexpr std::array<std::string_view, 1> layer_norm = {"aten.native_layer_norm.default"};
constexpr std::array<std::string_view, 1> gelu = {"aten.gelu.default"};
constexpr std::array<std::string_view, 1> silu = {"aten.silu.default"};
constexpr std::array<std::string_view, 1> softmax = {"aten._softmax.default"};
constexpr std::array<std::string_view, 1> convolution = {"aten.convolution.default"};

struct Row {
  OpKind kind;
  AtenCall call;
};
constexpr std::array rows = {Row{OpKind::Linear, {"product", products}},
                             Row{OpKind::MatMul, {"batched_product", batched}},
                             Row{OpKind::Conv2d, {"convolution", convolution}},
                             Row{OpKind::FlashAttention, {"attention", attention}},
                             Row{OpKind::LayerNorm, {"layer_norm", layer_norm}},
                             Row{OpKind::Gelu, {"gelu", gelu}},
                             Row{OpKind::Silu, {"silu", silu}},
                             Row{OpKind::Softmax, {"softmax", softmax}}};

// Two tables of three or more dimensions: one of two would be folded into a plain product.
bool is_batched(const Trace& trace, const Op& op) {
  for (const TensorId input : trace.inputs(op))
    if (trace[input].shape.rank() < 3) return false;
  return true;
}

}  // namespace

std::optional<AtenCall> named_call(const Trace& trace, const Op& op) {
  if (op.kind == OpKind::MatMul && !is_batched(trace, op)) return std::nullopt;
  for (const Row& row : rows)
    if (row.kind == op.kind) return row.call;
  return std::nullopt;
}

bool has_known_calls(const Trace& trace, const Op& op) {
  switch (op.kind) {
    case OpKind::Opaque:
      return turns_pairs(trace, op);
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::ReGelu2:
    case OpKind::ReSilu2:
      return false;
    case OpKind::MatMul:
      return is_batched(trace, op);
    case OpKind::Linear:
    case OpKind::Conv2d:
    case OpKind::FlashAttention:
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::Gelu:
    case OpKind::GeluComposed:
    case OpKind::Silu:
    case OpKind::Tanh:
    case OpKind::Sigmoid:
    case OpKind::Relu:
    case OpKind::Softmax:
    case OpKind::LogSoftmax:
    case OpKind::Add:
    case OpKind::Mul:
    case OpKind::Scale:
    case OpKind::Average:
    case OpKind::Dropout:
    case OpKind::DropPath:
    case OpKind::Cast:
    case OpKind::Rope:
    case OpKind::View:
    case OpKind::Select:
    case OpKind::Split:
    case OpKind::Copy:
    case OpKind::Concat:
    case OpKind::RepeatHeads:
    case OpKind::Embedding:
    case OpKind::MeanPool:
    case OpKind::MaxPool:
    case OpKind::Replicate:
    case OpKind::AllReduce:
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::Scatter:
    case OpKind::Receive:
    case OpKind::Send:
    case OpKind::NllLoss:
    case OpKind::VocabularyLoss:
      return true;  // some elementwise kernels and moves, which no group counts
  }
  return false;
}

// PyTorch adds the bias in place where rows do not lie in two or three dimensions.
bool may_be_saved(const Trace& trace, const Op& op) {
  if (!named_call(trace, op)) return false;
  return op.kind != OpKind::Linear || op.inputs < 3 || trace[trace.inputs(op)[0]].shape.rank() <= 3;
}

}  // namespace tidemark
