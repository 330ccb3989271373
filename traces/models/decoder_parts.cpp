// Norms and feed-forward halves, op by op, as transformers' modeling files write them.
#include "traces/models/decoder_parts.h"

#include <array>

#include "traces/expert_ops.h"
#include "traces/models/composed_norm.h"
#include "traces/models/liger.h"
#include "traces/padding_ops.h"

namespace tidemark {

namespace {

// torch.square() is pow(), which autocast runs in fp32; its backward makes x¹ and 2 · x¹ beside the
// gradient. Megatron-LM's (core/activations.py) is compiled to one kernel, which keeps what it
// read.
TensorId squared_relu(TraceBuilder& b, const std::string& name, TensorId x) {
  const OutputSpec made{"", b.shape(x), b[x].dtype};
  if (b.framework().transformer_engine)
    return b.opaque(name + ".relu2", std::array{x}, std::span(&made, 1), squared_row(size(b[x])));
  TensorId y = b.relu(name + ".relu", x);
  if (is_amp(precision_of(b.step()))) y = b.cast(name + ".relu.float", y, DType::Float32);
  const OutputSpec square{"", b.shape(y), b[y].dtype};
  const Bytes bytes = size(b[y]);
  return b.opaque(
      name + ".square", std::array{y}, std::span(&square, 1),
      {.operation = std::string(square_operation),
       .gradients = 0b1,
       .saved = input_bit(0),
       .quantized = input_bit(0),
       .forward = {.moved = Bytes{2 * bytes.count}},
       .backward = {
           .workspace = Bytes{2 * bytes.count}, .moved = Bytes{7 * bytes.count}, .kernels = 3}});
}

}  // namespace

TensorId activation(TraceBuilder& b, const std::string& name, TensorId x, ActivationForm form) {
  switch (form) {
    case ActivationForm::Silu:
      return b.silu(name + ".silu", x);
    case ActivationForm::Gelu:
      return b.gelu(name + ".gelu", x);
    case ActivationForm::GeluTanh:
      return b.fused_gelu(name + ".gelu", x, true);
    case ActivationForm::GeluComposed:
      return b.gelu(name + ".gelu", x, true);
    case ActivationForm::QuickGelu:
      return b.quick_gelu(name + ".gelu", x);
    case ActivationForm::Relu:
      return b.relu(name + ".relu", x);
    case ActivationForm::SquaredRelu:
      return squared_relu(b, name, x);
  }
  return no_tensor;
}

namespace {

TensorId gated(TraceBuilder& b, const std::string& name, TensorId x, const MlpConfig& config) {
  TensorId gate = b.linear(name + ".gate", x, config.width, config.bias);
  const bool is_fused = b.step().liger;
  if (!is_fused) gate = activation(b, name, gate, config.activation);
  const TensorId up = b.linear(name + ".up", x, config.width, config.bias);
  if (is_fused) return liger_gated(b, name + ".product", gate, up, config.activation);
  return b.mul(name + ".product", gate, up);
}

TensorId gated_packed(TraceBuilder& b, const std::string& name, TensorId x,
                      const MlpConfig& config) {
  const TensorId both = b.linear(name + ".gate_up", x, 2 * config.width, config.bias);
  const Shape half = b.shape(both).with_back(config.width);
  if (b.framework().fuses_swiglu && config.activation == ActivationForm::Silu) {
    const OutputSpec product{"", half, b[both].dtype};
    return b.opaque(name + ".product", std::array{both}, std::span(&product, 1),
                    gated_row(size(b[both])));
  }
  const auto halves = b.split(name + ".unpack", both, {half, half}, {"gate", "up"});
  if (b.step().liger)  // whose kernels want each half in one piece
    return liger_gated(b, name + ".product", b.copy(name + ".gate.dense", halves[0], half),
                       b.copy(name + ".up.dense", halves[1], half), config.activation);
  return b.mul(name + ".product", halves[1], activation(b, name, halves[0], config.activation));
}

}  // namespace

TensorId norm(TraceBuilder& b, const std::string& name, TensorId x, NormForm form, double epsilon) {
  if (form == NormForm::Layer || form == NormForm::LayerNoBias)
    return b.layer_norm(name, x, epsilon, form == NormForm::Layer);
  if (form == NormForm::LayerComposed) return composed_layer_norm(b, name, x, {b.shape(x).back()});
  if (b.step().liger) return liger_rms_norm(b, name, x, gain_of(form));
  return b.rms_norm(name, x, epsilon, gain_of(form));
}

TensorId mlp(TraceBuilder& b, const std::string& name, TensorId x, const MlpConfig& config) {
  const std::int64_t width = b.shape(x).back();
  b.begin_function();
  if (!config.is_in_block) b.local(x);
  const auto last = [&](std::string_view which, TensorId y) {
    y = b.dropout(name + ".inner_drop", y, config.dropout);
    if (config.reads_as_weights && b.framework().autocast_casts && !b.step().base)
      y = b.cast(name + ".inner_cast", y, b.base_dtype());
    y = b.linear(name + std::string(which), y, width, config.bias);
    y = b.dropout(name + ".drop", y, config.out_dropout);
    b.end_function();
    return y;
  };
  switch (config.form) {
    case MlpForm::Gated:
      return last(".down", gated(b, name, x, config));
    case MlpForm::GatedPacked:
      return last(".down", gated_packed(b, name, x, config));
    case MlpForm::Plain:
      break;
  }
  TensorId y = b.linear(name + ".fc1", x, config.width, config.bias);
  return last(".fc2", activation(b, name, y, config.activation));
}

TensorId latent_in(TraceBuilder& b, const std::string& name, TensorId tokens,
                   const ExpertsConfig& config) {
  return config.latent == 0 ? tokens : b.linear(name + ".latent_in", tokens, config.latent, false);
}

TensorId latent_out(TraceBuilder& b, const std::string& name, TensorId answers, std::int64_t width,
                    const ExpertsConfig& config) {
  return config.latent == 0 ? answers : b.linear(name + ".latent_out", answers, width, false);
}

}  // namespace tidemark
