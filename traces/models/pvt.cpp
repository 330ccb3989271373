// PVT and PVT v2 as in modeling_pvt.py and modeling_pvt_v2.py of Hugging Face transformers. Each
// stage halves the grid; keys and values are made of a smaller grid than queries are:
//   norm ─ q
//        └ reduce (convolution, or mean) ─ norm ─ k,v ─ scores ─ softmax ─ mix ─ proj ─ add
#include <fmt/format.h>

#include "traces/models/attention.h"
#include "traces/models/decoder_parts.h"
#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"
#include "traces/models/vit_block.h"

namespace tidemark {
namespace {

constexpr std::int64_t keys_side = 7;  // of the linear version's keys

struct PvtStage {
  TraceBuilder& b;
  const PvtConfig& config;
  const PvtConfig::Stage& stage;
  std::string name;
  std::int64_t side;  ///< of its grid

  double dropout() const { return b.dropout_probability(config.dropout); }

  TensorId normed(const std::string& which, TensorId x) const {
    return b.layer_norm(which, x, config.epsilon);
  }

  TensorId as_grid(const std::string& which, TensorId x) const {
    return b.view(which + ".grid", x, {b.shape(x)[0], b.shape(x)[2], side, side},
                  LayoutTransform::ChannelsFirst);
  }

  // A norm reads rows of channels, so it makes the transposed view contiguous first.
  TensorId as_tokens(const std::string& which, TensorId x) const {
    const Shape s = b.shape(x);
    return b.copy(which + ".tokens", x, {s[0], s[2] * s[3], s[1]}, LayoutTransform::ChannelsLast);
  }

  TensorId reduced(const std::string& which, TensorId x) const {
    if (!config.pools_keys && stage.reduction == 1) return x;
    const Shape s = b.shape(x);
    const std::int64_t kernel = config.pools_keys ? 1 : stage.reduction;
    const std::int64_t to = config.pools_keys ? keys_side : (side - kernel) / kernel + 1;
    const Shape small = {s[0], s[2], to, to};
    TensorId y = as_grid(which, x);
    if (config.pools_keys) {
      const OutputSpec mean{"", small, b[x].dtype};
      y = b.opaque(which + ".pool", std::array{y}, std::span(&mean, 1),
                   {.operation = "aten::_adaptive_avg_pool2d",
                    .gradients = 1,
                    .saved = input_bit(0),
                    .computes = Formula::AdaptiveMean});
    }
    y = as_tokens(which, b.conv2d(which + ".conv", y, small, kernel, kernel, 0, 1, true));
    y = b.local(normed(which + ".norm", y));
    return config.pools_keys ? b.local(b.gelu(which + ".gelu", y)) : y;
  }

  TensorId attention(const std::string& which, TensorId x) const {
    b.begin_function();
    const TensorId memory = reduced(which + ".reduce", x);
    const TensorId y = self_attention(b, which, x,
                                      {.heads = stage.heads,
                                       .packed = false,
                                       .scales_query = false,
                                       .qkv_bias = config.qkv_bias,
                                       .dropout = b.dropout_probability(config.attention_dropout),
                                       .names_scores = true,
                                       .calls_sdpa = false,
                                       .memory = memory});
    b.end_function();
    return b.dropout(which + ".drop", y, dropout());
  }

  TensorId feed(const std::string& which, TensorId x) const {
    const auto inside =
        static_cast<std::int64_t>(static_cast<double>(stage.width) * stage.mlp_ratio);
    TensorId y = b.linear(which + ".fc1", x, inside);
    if (config.pools_keys) y = b.relu(which + ".relu", y);
    if (config.overlaps) {
      const TensorId grid = as_grid(which, y);
      y = b.conv2d(which + ".depthwise", grid, b.shape(grid), 3, 1, 1, inside, true);
      y = b.view(which + ".tokens", y, {b.shape(x)[0], side * side, inside},
                 LayoutTransform::ChannelsLast);
    }
    y = b.dropout(which + ".drop1", activation(b, which, y, config.activation), dropout());
    y = config.overlaps ? apart(which + ".fc2", y) : b.linear(which + ".fc2", y, stage.width);
    return b.dropout(which + ".drop2", y, dropout());
  }

  // Channels that lie apart are copied for the product, and the bias is added to it in place.
  TensorId apart(const std::string& which, TensorId x) const {
    b.begin_function();
    const TensorId dense = b.copy(which + ".dense", b.local(x), b.shape(x));
    const TensorId y = b.linear(which, dense, stage.width, false);
    const TensorId sum = b.add_in_place(which + ".add", y,
                                        b.to_compute(b.parameter(which + ".bias", {stage.width})));
    b.end_function();
    return sum;
  }

  TensorId block(const std::string& which, TensorId x, double rate) const {
    b.part(Part::F);
    b.begin_function();
    TensorId y = b.local(attention(which + ".attn", normed(which + ".norm1", x)));
    y = b.local(b.drop_path(which + ".drop_path1", y, rate));
    x = b.residual(which + ".add1", x, y);
    b.part(Part::G);
    b.begin_function();  // called with what the norm makes
    y = feed(which + ".mlp", b.local(normed(which + ".norm2", x)));
    b.end_function();
    y = b.local(b.drop_path(which + ".drop_path2", y, rate));
    x = b.residual(which + ".add2", x, y);
    b.end_function();
    return x;
  }

  // Version 1 stretches its table in every call, even to the same size.
  TensorId positions(std::int64_t prefix) const {
    const std::int64_t tokens = side * side;
    const Shape rows = {1, tokens, stage.width};
    const TensorId table = b.parameter(name + ".pos_embed", {1, tokens + prefix, stage.width});
    TensorId y = table;
    if (prefix > 0) y = b.select(name + ".pos_embed.patches", y, rows, LayoutTransform::Slice, 1);
    y = as_grid(name + ".pos_embed", y);
    const OutputSpec stretched{"", b.shape(y), b[y].dtype};
    y = b.opaque(name + ".pos_embed.stretch", std::array{y}, std::span(&stretched, 1),
                 {.operation = "aten::upsample_bilinear2d",
                  .gradients = 1,
                  .computes = Formula::StretchBilinear});
    y = b.view(name + ".pos_embed.rows", y, rows, LayoutTransform::ChannelsLast);
    if (prefix == 0) return y;
    const TensorId first = b.select(name + ".pos_embed.class", table, {1, prefix, stage.width});
    return b.concat(name + ".pos_embed.join", std::array{first, y}, b.shape(table));
  }

  TensorId embedded(TensorId x, bool is_last) const {
    const std::int64_t batch = b.shape(x)[0];
    TensorId y = b.conv2d(name + ".patch_embed", x, {batch, stage.width, side, side}, stage.kernel,
                          stage.stride, config.overlaps ? stage.kernel / 2 : 0, 1, true);
    y = normed(name + ".patch_embed.norm", as_tokens(name + ".patch_embed", y));
    if (config.overlaps) return y;
    const std::int64_t prefix = is_last ? 1 : 0;
    if (is_last) {
      const TensorId first = b.parameter("class_token", {1, 1, stage.width});
      y = b.concat("tokens", std::array{first, y}, {batch, side * side + 1, stage.width});
    }
    y = b.add(name + ".pos_add", y, positions(prefix));
    return b.dropout(name + ".pos_drop", y, dropout());
  }
};

std::int64_t side_after(const PvtConfig& config, const PvtConfig::Stage& stage, std::int64_t side) {
  const std::int64_t padding = config.overlaps ? stage.kernel / 2 : 0;
  const std::int64_t room = side + 2 * padding - stage.kernel;
  const std::int64_t after = room < 0 ? 0 : room / stage.stride + 1;
  if (after < (config.pools_keys ? 1 : stage.reduction))
    throw UsageError(
        fmt::format("{} x {} pixels are too few for this stage; use a larger image", side, side));
  return after;
}

struct Pvt {
  TraceBuilder& b;
  const PvtConfig& config;

  std::int64_t depth() const {
    std::int64_t sum = 0;
    for (const PvtConfig::Stage& stage : config.stages) sum += stage.depth;
    return sum;
  }

  // A name holds what a stage made until the next one, or in version 1 its first block, returns,
  // and in version 2 the image of it, too. Version 2's own checkpointing wraps stages, patches
  // included.
  TensorId operator()(TensorId x) const {
    std::int64_t side = b.shape(x)[2], i = 0;
    TensorId named = no_tensor;
    for (std::size_t s = 0; s < config.stages.size(); ++s) {
      const PvtConfig::Stage& of = config.stages[s];
      const bool is_last = s + 1 == config.stages.size();
      side = side_after(config, of, side);
      const PvtStage stage{b, config, of, fmt::format("stages.{}", s), side};
      b.begin_function();
      if (named != no_tensor) b.local(named);
      if (config.overlaps) b.local(x);
      if (!config.overlaps) x = stage.embedded(x, is_last);
      for (std::int64_t k = 0; k < of.depth; ++k, ++i) {
        const std::string name = fmt::format("{}.blocks.{}", stage.name, k);
        const bool embeds = config.overlaps && k == 0;
        const auto number = static_cast<int>(s);
        b.begin_block(name, x, embeds ? -1 : number, config.overlaps ? number : -1);
        if (embeds) x = stage.embedded(x, is_last);
        x = stage.block(name, x, depth_rate(b.drop_path_probability(config.drop_path), i, depth()));
        b.end_block();
        if (!config.overlaps && k == 0) b.end_function();
      }
      if (config.overlaps) {
        x = stage.normed(stage.name + ".norm", x);
        b.end_function();
      }
      named = x;
      if (!is_last || config.overlaps)
        x = b.copy(stage.name + ".image", x, {b.shape(x)[0], of.width, side, side},
                   LayoutTransform::ChannelsFirst);
    }
    return x;
  }

  TensorId pooled(TensorId x) const {
    const Shape row = {b.step().batch, config.stages.back().width};
    if (!config.overlaps) return b.select("class_output", all_samples(b, "class_output", x), row);
    const Shape s = b.shape(x);
    const TensorId tokens =
        b.view("pool.tokens", x, {s[0], s[2] * s[3], s[1]}, LayoutTransform::ChannelsLast);
    return b.mean_pool("pool", tokens, row);
  }
};

}  // namespace

Trace build_pvt(const std::string& model, const PvtConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "pvt", options);
  const std::int64_t image = image_size(options, config.image);
  if (!config.overlaps && image != config.image)
    throw UsageError(fmt::format("image size {}: this model takes {} only", image, config.image));
  const TensorId images = b.input("images", {options.batch, config.channels, image, image},
                                  b.base_dtype(), fill::Pixels{});
  const TensorId targets = image_targets(b, config.head);
  const Pvt pvt{b, config};
  TensorId x = pvt(images);
  if (!config.overlaps) x = b.layer_norm("norm", x, config.epsilon);
  if (config.head == Head::None) return b.finish(mean_loss(b, std::array{x}));
  return b.finish(classification_loss(
      b, b.linear("head", pvt.pooled(x), config.classes, true, ParameterRole::Head), targets));
}

}  // namespace tidemark
