// Vision transformers, DeiT and DINOv2: patch embedding, prefix tokens, pre-norm blocks, head and
// loss.
#include <fmt/format.h>

#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"
#include "traces/models/vit_block.h"

namespace tidemark {
namespace {

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
  if (config.head == Head::None && config.pools_patches) {
    // PyTorch's mean walks over rows that lie apart; here it wants them in one piece.
    const TensorId row =
        b.copy("class_output", x, {b.shape(x)[0], config.width}, LayoutTransform::Slice);
    return mean_loss(b, std::array{x, row});
  }
  const TensorId y = class_output(b, x, config);
  if (config.head == Head::None) {
    const TensorId pooled = b.tanh("pooler.tanh", b.linear("pooler.dense", y, config.width));
    return mean_loss(b, std::array{x, pooled});
  }
  return classification_loss(b, b.linear("head", y, config.classes, true, ParameterRole::Head),
                             targets);
}

}  // namespace

Trace build_vit(const std::string& model, const VitConfig& config, const StepOptions& options) {
  StepOptions step = options;
  if (!step.ema) step.ema = config.ema;
  TraceBuilder b(model, "vit", step);
  const std::int64_t image = image_size(options, config.image);
  const std::int64_t side = patches_per_side(image, config.patch);
  const std::int64_t batch = options.batch, patches = side * side;
  const std::int64_t tokens = patches + config.prefix_tokens;
  const double dropout = b.dropout_probability(config.dropout);

  b.begin_function();  // whose name for all outputs lasts until the loss is there
  b.begin_function();  // ViTModel names what its encoder begins with
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
  const std::int64_t of_table = config.stretches_positions ? config.image / config.patch : side;
  x = b.add(
      "pos_add", x,
      stretched_positions(b, "pos_embed", {of_table, side, config.prefix_tokens, config.width}));
  x = b.local(b.dropout("pos_drop", x, dropout));
  for (std::int64_t i = 0; i < config.depth; ++i)
    x = vit_block(b, fmt::format("blocks.{}", i), x, config,
                  depth_rate(b.drop_path_probability(config.drop_path), i, config.depth));

  x = b.layer_norm("norm", x, config.epsilon);
  b.end_function();
  const TensorId loss = loss_of(b, b.local(x), targets, config);
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
