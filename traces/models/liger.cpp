// Each is an opaque op: what its backward reads, and over what it writes, is all that planning
// asks.
#include "traces/models/liger.h"

#include "traces/models/model_config.h"

namespace tidemark {
namespace {

constexpr std::string_view of_norm = "liger_kernel::rms_norm";
constexpr std::string_view of_silu = "liger_kernel::swiglu";
constexpr std::string_view of_gelu = "liger_kernel::geglu";
constexpr std::string_view of_rope = "liger_kernel::rope";

constexpr Operands x0 = input_bit(0), x1 = input_bit(1), x2 = input_bit(2), x3 = input_bit(3),
                   y1 = output_bit(1);

/// The norm's backward sums the weight's gradient in fp32, by rows: one per processor of an A100.
constexpr std::int64_t processors = 108;

/// A kernel that walks over so many tensors of x's size.
OpaquePass walk(const TraceBuilder& b, TensorId x, std::int64_t tensors) {
  return {.moved = Bytes{tensors * size(b[x]).count}};
}

}  // namespace

std::string liger_defect(const DecoderConfig& config) {
  const bool is_rms = config.norm != NormForm::Layer && config.norm != NormForm::LayerNoBias &&
                      config.norm != NormForm::LayerComposed;
  const bool is_gated =
      config.mlp_form != MlpForm::Plain &&
      (config.activation == ActivationForm::Silu || config.activation == ActivationForm::GeluTanh);
  if (!is_rms || !is_gated || config.learned_positions)
    return "Liger has kernels for RMSNorm, SwiGLU or GeGLU, and rotations: for LLaMA's kin";
  if (config.experts.count > 0) return "its experts are not known with Liger's kernels";
  if (config.latent.key_rank > 0) return "its latent attention is not known with Liger's kernels";
  if (config.rotary_width != 0 && config.rotary_width != config.head_width)
    return "Liger's rotation turns whole heads, and this model a part of them";
  if (config.turn != HeadTurn::Halves)
    return "Liger's rotation turns elements half a head apart, and this model neighbours";
  if (config.logit_factor != 1 || config.branch_factor != 1)
    return "what it multiplies branches and logits by is not known with Liger's kernels";
  if (config.logit_cap > 0) return "its capped logits are not known with Liger's loss";
  return {};
}

TensorId liger_rms_norm(TraceBuilder& b, const std::string& name, TensorId x, RmsGain gain) {
  const TensorId gamma = b.parameter(name + ".weight", {b.shape(x).back()});
  const bool is_trained = b[gamma].trainable;
  OpaqueRow row{
      .operation = std::string(of_norm), .gradients = 0b11, .saved = x0 | x1 | y1, .quantized = x0};
  // Not where another gradient is that of y, too, as behind a branch (OLMo-2). A frozen weight
  // leaves the kernel nothing else to write.
  if (gain == RmsGain::Rounded && is_trained) row.handed_on = 0b01;
  row.forward = walk(b, x, 2);
  row.backward = walk(b, x, 3);
  if (is_trained)
    row.backward.workspace = Bytes{processors * size_of(DType::Float32) * b.shape(x).back()};
  const std::array outputs = {OutputSpec{"", b.shape(x), b[x].dtype},
                              OutputSpec{"rstd", b.shape(x).with_back(1), DType::Float32}};
  return b.opaque(name, std::array{x, gamma}, outputs, std::move(row));
}

TensorId liger_gated(TraceBuilder& b, const std::string& name, TensorId gate, TensorId up,
                     ActivationForm activation) {
  OpaqueRow row{.operation = std::string(activation == ActivationForm::Silu ? of_silu : of_gelu),
                .gradients = 0b11,
                .written_over = 0b11,
                .saved = x0 | x1,
                .quantized = x0 | x1};
  row.forward = walk(b, gate, 3);
  row.backward = walk(b, gate, 5);
  const OutputSpec product{"", b.shape(gate), b[gate].dtype};
  return b.opaque(name, std::array{gate, up}, std::span(&product, 1), std::move(row));
}

// It turns q and k where they are, both in one node, so that k has a gradient where q has one. Here
// the results have memory of their own, and q and k are freed: what runs in place may not run
// again, and a checkpoint runs it again.
std::array<TensorId, 2> liger_rope(TraceBuilder& b, const std::string& name,
                                   std::array<TensorId, 2> heads, TensorId cosine, TensorId sine) {
  OpaqueRow row{.operation = std::string(of_rope), .gradients = 0b11, .saved = x2 | x3};
  const Bytes both = size(b[heads[0]]) + size(b[heads[1]]);
  row.forward.moved = row.backward.moved = Bytes{2 * both.count};
  const std::array outputs = {OutputSpec{"q", b.shape(heads[0]), b[heads[0]].dtype},
                              OutputSpec{"k", b.shape(heads[1]), b[heads[1]].dtype}};
  const TensorId q =
      b.opaque(name, std::array{heads[0], heads[1], cosine, sine}, outputs, std::move(row));
  return {q, b.trace().outputs(b.trace().ops.back())[1]};
}

bool is_liger(const OpaqueRow& row) { return row.operation == of_norm; }

}  // namespace tidemark
