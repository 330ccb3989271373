// Vision transformers, DeiT and DINOv2: patch embedding, prefix tokens, pre-norm blocks, head and
// loss.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

TensorId half_of_mlp(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config,
                     double dropout) {
  if (config.gated_mlp)
    return mlp(b, name, x, {.form = MlpForm::GatedPacked, .width = config.mlp, .bias = true});
  TensorId y = b.linear(name + ".fc1", x, config.mlp);
  y = b.gelu(name + ".gelu", y);
  y = b.dropout(name + ".drop1", y, config.drops_hidden ? dropout : 0);
  y = b.linear(name + ".fc2", y, config.width);
  return b.dropout(name + ".drop2", y, dropout);
}

TensorId scaled(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config) {
  return config.layer_scale ? b.mul(name, x, b.parameter(name + ".weight", {config.width})) : x;
}

// Hugging Face's layers have names for what they norm first and for what the attention gives, so
// both stay until the layer returns.
bool names_halves(const VitConfig& config) { return !config.packed_qkv; }

TensorId block(TraceBuilder& b, int i, TensorId x, const VitConfig& config, double dropout) {
  const std::string name = fmt::format("blocks.{}", i);
  const double drop_path = config.depth < 2 ? 0
                                            : b.drop_path_probability(config.drop_path) * i /
                                                  static_cast<double>(config.depth - 1);
  b.begin_block(name, x, 0);
  b.part(Part::F);
  b.begin_function();
  TensorId y = b.layer_norm(name + ".norm1", x, config.epsilon);
  if (names_halves(config)) b.local(y);
  const bool in_fp32 =
      config.softmax_in_fp32 || (b.framework().vision_softmax_fp32 && !config.packed_qkv);
  y = self_attention(b, name + ".attn", y,
                     {.heads = config.heads,
                      .packed = config.packed_qkv,
                      .unpacking = config.unpacking,
                      .scales_query = config.scales_query,
                      .qkv_bias = config.qkv_bias,
                      .softmax_in_fp32 = in_fp32,
                      .probabilities_as_query = in_fp32,
                      .dropout = b.dropout_probability(config.attention_dropout),
                      .by_shared_code = !config.packed_qkv});
  y = b.dropout(name + ".drop", y, dropout);
  y = scaled(b, name + ".scale1", y, config);
  if (names_halves(config)) b.local(y);
  y = b.drop_path(name + ".drop_path1", y, drop_path);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  y = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = half_of_mlp(b, name + ".mlp", y, config, dropout);
  y = scaled(b, name + ".scale2", y, config);
  y = b.drop_path(name + ".drop_path2", y, drop_path);
  x = b.residual(name + ".add2", x, y);
  b.end_function();
  b.end_block();
  return x;
}

// x[:, …] takes all samples first, and that has a gradient of its own.
TensorId all_samples(TraceBuilder& b, const std::string& name, TensorId x) {
  return b.select(name + ".samples", x, b.shape(x));
}

// The class token, and the mean of the others behind it.
TensorId class_and_patches(TraceBuilder& b, TensorId x) {
  const std::int64_t batch = b.shape(x)[0], patches = b.shape(x)[1] - 1, width = b.shape(x)[2];
  const TensorId first =
      b.select("class_output", all_samples(b, "class_output", x), {batch, width});
  const TensorId others = b.select("patch_outputs", all_samples(b, "patch_outputs", x),
                                   {batch, patches, width}, LayoutTransform::Slice, 1);
  const TensorId mean = b.mean_pool("pool", others, {batch, width});
  return b.concat("head.input", std::array{first, mean}, {batch, 2 * width});
}

TensorId class_output(TraceBuilder& b, TensorId x, const VitConfig& config) {
  const Shape row = {b.step().batch, config.width};
  return config.prefix_tokens > 0 ? b.select("class_output", x, row) : b.mean_pool("pool", x, row);
}

// The second prefix token's classes are those that a teacher gives: hard distillation, where both
// losses count alike (arXiv 2012.12877, equation 3).
TensorId distilled_loss(TraceBuilder& b, TensorId x, TensorId targets, const VitConfig& config) {
  const Shape row = {b.step().batch, config.width};
  const TensorId taught = b.select("distillation_output", x, row, LayoutTransform::Slice, 1);
  const TensorId teacher = b.input("teacher_targets", {b.step().batch}, DType::Int64);
  const TensorId by_class =
      b.linear("head", class_output(b, x, config), config.classes, true, ParameterRole::Head);
  const TensorId by_teacher =
      b.linear("head_distillation", taught, config.classes, true, ParameterRole::Head);
  const TensorId loss = b.cross_entropy("loss.class", by_class, targets);
  return b.average("loss",
                   std::array{loss, b.cross_entropy("loss.distillation", by_teacher, teacher)});
}

TensorId loss_of(TraceBuilder& b, TensorId x, TensorId targets, const VitConfig& config) {
  if (config.head == Head::DistilledClassification) return distilled_loss(b, x, targets, config);
  if (config.pools_patches && config.head != Head::None)
    return classification_loss(
        b, b.linear("head", class_and_patches(b, x), config.classes, true, ParameterRole::Head),
        targets);
  const TensorId y = class_output(b, x, config);
  if (config.head == Head::None) {
    if (config.pools_patches) return mean_loss(b, std::array{x, y});
    const TensorId pooled = b.tanh("pooler.tanh", b.linear("pooler.dense", y, config.width));
    return mean_loss(b, std::array{x, pooled});
  }
  return classification_loss(b, b.linear("head", y, config.classes, true, ParameterRole::Head),
                             targets);
}

// The table of positions; that of another image is stretched, in fp32 (transformers'
// interpolate_pos_encoding()). The class token keeps its own.
TensorId positions(TraceBuilder& b, std::int64_t side, const VitConfig& config) {
  const std::int64_t prefix = config.prefix_tokens, width = config.width;
  const std::int64_t of_table = config.stretches_positions ? config.image / config.patch : side;
  const TensorId table = b.parameter("pos_embed", {1, of_table * of_table + prefix, width});
  if (of_table == side) return table;
  const TensorId first = b.select("pos_embed.prefix", table, {1, prefix, width});
  TensorId grid = b.select("pos_embed.grid", table, {1, of_table * of_table, width},
                           LayoutTransform::Slice, prefix);
  grid = b.cast("pos_embed.float", grid, DType::Float32);
  const OutputSpec stretched{"", {1, side * side, width}, DType::Float32};
  grid = b.opaque("pos_embed.stretch", std::array{grid}, std::span(&stretched, 1),
                  {.operation = "aten::upsample_bicubic2d", .gradients = 1});
  grid = b.cast("pos_embed.round", grid, b[table].dtype);
  return b.concat("pos_embed.join", std::array{first, grid}, {1, side * side + prefix, width});
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

  const TensorId images =
      b.input("images", {batch, config.channels, image, image}, b.base_dtype(), fill::Pixels{});
  const TensorId targets = image_targets(b, config.head);
  TensorId x = b.conv2d("patch_embed", images, {batch, config.width, side, side}, config.patch,
                        config.patch, 0, 1, true);
  x = b.view("patch_embed.tokens", x, {batch, patches, config.width},
             LayoutTransform::ChannelsLast);
  if (config.prefix_tokens > 0) {
    const TensorId prefix = b.parameter("class_token", {1, config.prefix_tokens, config.width});
    x = b.concat("tokens", std::array{prefix, x}, {batch, tokens, config.width});
  }
  if (config.mask_token) b.parameter("mask_token", {1, config.width});
  x = b.add("pos_add", x, positions(b, side, config));
  x = b.dropout("pos_drop", x, dropout);
  for (int i = 0; i < config.depth; ++i) x = block(b, i, x, config, dropout);

  x = b.layer_norm("norm", x, config.epsilon);
  return b.finish(loss_of(b, x, targets, config));
}

}  // namespace tidemark
