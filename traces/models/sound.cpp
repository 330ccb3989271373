// Whisper's two convolutions, each with a GELU (modeling_whisper.py of transformers 4.57).
#include "traces/models/sound.h"

#include <array>

namespace tidemark {
namespace {

constexpr std::int64_t kernel = 3;

// x [batch, in, length] → [batch, out, length / stride]. The node holds both operands.
TensorId conv1d(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t out,
                std::int64_t stride) {
  const Shape s = b.shape(x);
  const TensorId weight = b.parameter(name + ".weight", {out, s[1], kernel});
  const TensorId bias = b.parameter(name + ".bias", {out});
  const std::array inputs = {b.to_compute(x), b.to_compute(weight), b.to_compute(bias)};
  const std::int64_t length = (s[2] - 1) / stride + 1;
  const OutputSpec y{"", {s[0], out, length}, b.compute_dtype()};
  const std::int64_t flops = 2 * numel({s[0], out, length, s[1] * kernel});
  const std::array attributes = {Attribute{AttributeKey::Stride, static_cast<double>(stride)},
                                 Attribute{AttributeKey::Padding, kernel / 2}};
  const bool is_first = b[x].category == Category::Input;
  return b.opaque(name, inputs, std::span(&y, 1),
                  {.operation = "aten::convolution",
                   .gradients = is_first ? 0b110U : 0b111U,
                   .saved = input_bit(0) | input_bit(1),
                   .computes = Formula::Conv1d,
                   .forward = {.flops = flops},
                   .backward = {.flops = is_first ? flops : 2 * flops}},
                  attributes);
}

}  // namespace

TensorId sound_embedding(TraceBuilder& b, const std::string& name, std::int64_t bins,
                         std::int64_t tokens, std::int64_t width) {
  const std::int64_t batch = b.step().batch;
  const TensorId sound = b.input("input_features", {batch, bins, 2 * tokens}, b.base_dtype());
  TensorId x = b.gelu(name + ".gelu1", conv1d(b, name + ".conv1", sound, width, 1));
  x = b.gelu(name + ".gelu2", conv1d(b, name + ".conv2", x, width, 2));
  x = b.view(name + ".tokens", x, {batch, tokens, width}, LayoutTransform::ChannelsLast);
  const TensorId places =
      b.input(name + ".position_ids", {tokens}, DType::Int64, fill::Positions{});
  const TensorId table =
      b.parameter(name + ".position_embed.weight", {tokens, width}, ParameterRole::Fixed);
  const TensorId waves = b.view(
      name + ".waves", b.embedding(name + ".position_embed", places, table), {1, tokens, width});
  return b.add(name + ".pos_add", x, waves);
}

}  // namespace tidemark
