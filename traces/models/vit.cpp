#include <fmt/format.h>

#include "traces/models/image_model.h"
#include "traces/models/model_config.h"

namespace tidemark {
namespace {

TensorId mlp(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config,
             double dropout) {
  TensorId y = b.linear(name + ".fc1", x, config.mlp);
  y = b.gelu(name + ".gelu", y);
  y = b.dropout(name + ".drop1", y, config.drops_hidden ? dropout : 0);
  y = b.linear(name + ".fc2", y, config.width);
  return b.dropout(name + ".drop2", y, dropout);
}

TensorId block(TraceBuilder& b, int i, TensorId x, const VitConfig& config, double dropout) {
  const std::string name = fmt::format("blocks.{}", i);
  const double drop_path = config.depth < 2 ? 0
                                            : b.drop_path_probability(config.drop_path) * i /
                                                  static_cast<double>(config.depth - 1);
  b.begin_block(name, x, 0);
  b.part(Part::F);
  TensorId y = b.layer_norm(name + ".norm1", x, config.epsilon);
  y = self_attention(b, name + ".attn", y,
                     {.heads = config.heads,
                      .packed = config.packed_qkv,
                      .unpacking = config.unpacking,
                      .scales_query = config.scales_query,
                      .qkv_bias = config.qkv_bias,
                      .dropout = b.dropout_probability(config.attention_dropout)});
  y = b.dropout(name + ".drop", y, dropout);
  y = b.drop_path(name + ".drop_path1", y, drop_path);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  y = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = mlp(b, name + ".mlp", y, config, dropout);
  y = b.drop_path(name + ".drop_path2", y, drop_path);
  x = b.residual(name + ".add2", x, y);
  b.end_block();
  return x;
}

}  // namespace

Trace build_vit(const std::string& model, const VitConfig& config, const StepOptions& options) {
  StepOptions step = options;
  if (!step.ema) step.ema = config.ema;
  TraceBuilder b(model, "vit", step);
  const std::int64_t image = image_size(options, config.image);
  const std::int64_t side = image / config.patch;
  if (side < 1 || image % config.patch != 0)
    throw UsageError(
        fmt::format("image size {} is not a multiple of the patch size {}", image, config.patch));
  const std::int64_t batch = options.batch, patches = side * side;
  const std::int64_t tokens = patches + config.prefix_tokens;
  const double dropout = b.dropout_probability(config.dropout);

  const TensorId images = b.input("images", {batch, config.channels, image, image}, DType::Float32);
  const TensorId targets = b.input("targets", {batch}, DType::Int64);
  TensorId x = b.conv2d("patch_embed", images, {batch, config.width, side, side}, config.patch,
                        config.patch, 0, 1, true);
  x = b.view("patch_embed.tokens", x, {batch, patches, config.width}, Movement::ChannelsLast);
  if (config.prefix_tokens > 0) {
    const TensorId prefix = b.parameter("class_token", {1, config.prefix_tokens, config.width});
    x = b.concat("tokens", std::array{prefix, x}, {batch, tokens, config.width});
  }
  x = b.add("pos_add", x, b.parameter("pos_embed", {1, tokens, config.width}));
  x = b.dropout("pos_drop", x, dropout);
  for (int i = 0; i < config.depth; ++i) x = block(b, i, x, config, dropout);

  x = b.layer_norm("norm", x, config.epsilon);
  x = config.prefix_tokens > 0 ? b.select("class_output", x, {batch, config.width})
                               : b.mean_pool("pool", x, {batch, config.width});
  const TensorId logits = b.linear("head", x, config.classes, true, ParameterRole::Head);
  return b.finish(b.cross_entropy("loss", logits, targets));
}

}  // namespace tidemark
