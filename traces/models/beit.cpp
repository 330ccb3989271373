// BEiT as in modeling_beit.py of Hugging Face transformers: pre-norm blocks whose scores get a bias
// by relative places, out of a table that is stretched to the image in every call.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"
#include "traces/models/vit_block.h"

namespace tidemark {
namespace {

struct Beit {
  TraceBuilder& b;
  const BeitConfig& config;
  std::int64_t side;  ///< of the grid of patches

  TensorId opaque(const std::string& name, TensorId x, const Shape& shape, OpaqueRow row) const {
    const OutputSpec made{"", shape, b[x].dtype};
    return b.opaque(name, std::array{x}, std::span(&made, 1), std::move(row));
  }

  // Rows for all distances of two patches, and three for those from and to the class token → one
  // number per head and pair of tokens. The places lie on the CPU and are copied for each look.
  TensorId bias(const std::string& name, TensorId table) const {
    const std::int64_t of_table = config.image / config.patch, tokens = side * side + 1;
    const std::int64_t span = 2 * of_table - 1, wanted = 2 * side - 1, heads = config.heads;
    TensorId grid = b.select(name + ".grid", table, {span * span, heads});
    grid = b.view(name + ".map", grid, {1, heads, span, span}, LayoutTransform::ChannelsFirst);
    grid = opaque(name + ".stretch", grid, {1, heads, wanted, wanted},
                  {.operation = "aten::upsample_bilinear2d",
                   .gradients = 1,
                   .computes = Formula::StretchBilinear});
    grid = b.view(name + ".rows", grid, {wanted * wanted, heads}, LayoutTransform::ChannelsLast);
    const TensorId others =
        b.select(name + ".others", table, {3, heads}, LayoutTransform::Slice, span * span);
    const TensorId rows =
        b.concat(name + ".join", std::array{grid, others}, {wanted * wanted + 3, heads});
    const Bytes places{tokens * tokens * size_of(DType::Int64)};
    const TensorId found = opaque(name + ".found", rows, {tokens * tokens, heads},
                                  {.operation = "aten::index",
                                   .gradients = 1,
                                   .forward = {.workspace = places},
                                   .backward = {.workspace = places}});
    return b.copy(name, found, {1, heads, tokens, tokens}, LayoutTransform::ChannelsFirst);
  }

  TensorId new_table(const std::string& name) const {
    const std::int64_t span = 2 * (config.image / config.patch) - 1;
    return b.parameter(name, {span * span + 3, config.heads});
  }

  TensorId attention(const std::string& name, TensorId x, TensorId shared) const {
    const bool shares = b.framework().shared_attention;
    AttentionConfig with{.heads = config.heads,
                         .packed = false,
                         .scales_query = false,
                         .key_bias = false,
                         .softmax_in_fp32 = shares,
                         .probabilities_as_query = shares,
                         .dropout = b.dropout_probability(config.attention_dropout),
                         .names_scores = !shares};
    if (config.biases_blocks)
      with.bias = bias(name + ".relative", new_table(name + ".relative_position_bias_table"));
    if (shared != no_tensor)
      with.bias = with.bias == no_tensor ? bias("shared_bias." + name, shared)
                                         : b.add(name + ".relative.sum", with.bias,
                                                 bias("shared_bias." + name, shared));
    return self_attention(b, name, x, with);
  }

  TensorId scaled(const std::string& name, TensorId x) const {
    return config.layer_scale ? b.mul(name, x, b.parameter(name + ".weight", {config.width})) : x;
  }

  TensorId block(std::int64_t i, TensorId x, TensorId shared) const {
    const std::string name = fmt::format("blocks.{}", i);
    const double dropout = b.dropout_probability(config.dropout);
    const double rate = depth_rate(b.drop_path_probability(config.drop_path), i, config.depth);
    b.begin_block(name, x, 0);
    b.part(Part::F);
    b.begin_function();
    TensorId y =
        attention(name + ".attn", b.layer_norm(name + ".norm1", x, config.epsilon), shared);
    y = b.local(b.dropout(name + ".attn.drop", y, dropout));
    y = b.local(scaled(name + ".scale1", y));
    x = b.residual(name + ".add1", x, b.drop_path(name + ".drop_path1", y, rate));
    b.part(Part::G);
    y = b.linear(name + ".fc1", b.layer_norm(name + ".norm2", x, config.epsilon), config.mlp);
    y = b.linear(name + ".fc2", activation(b, name, y, config.activation), config.width);
    y = scaled(name + ".scale2", b.dropout(name + ".drop", y, dropout));
    x = b.residual(name + ".add2", x, b.drop_path(name + ".drop_path2", y, rate));
    b.end_function();
    b.end_block();
    return x;
  }

  TensorId embedded(TensorId images) const {
    const std::int64_t batch = b.step().batch, patches = side * side, width = config.width;
    TensorId x = b.conv2d("patch_embed", images, {batch, width, side, side}, config.patch,
                          config.patch, 0, 1, true);
    x = b.view("patch_embed.tokens", x, {batch, patches, width}, LayoutTransform::ChannelsLast);
    const TensorId first = b.parameter("class_token", {1, 1, width});
    if (config.mask_token) b.parameter("mask_token", {1, 1, width});
    x = b.concat("tokens", std::array{first, x}, {batch, patches + 1, width});
    if (config.absolute_positions)
      x = b.add("pos_add", x,
                stretched_positions(b, "pos_embed", {config.image / config.patch, side, 1, width}));
    return b.dropout("pos_drop", x, b.dropout_probability(config.dropout));
  }

  TensorId pooled(TensorId x) const {
    const Shape s = b.shape(x), row = {s[0], s[2]};
    const TensorId all = all_samples(b, "pool", x);
    if (!config.pools_patches) return b.select("class_output", all, row);
    const TensorId patches =
        b.select("pool.patches", all, {s[0], s[1] - 1, s[2]}, LayoutTransform::Slice, 1);
    return b.layer_norm("pool.norm", b.mean_pool("pool.mean", patches, row), config.epsilon);
  }
};

}  // namespace

Trace build_beit(const std::string& model, const BeitConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "beit", options);
  const std::int64_t image = image_size(options, config.image), batch = options.batch;
  const Beit beit{b, config, patches_per_side(image, config.patch)};
  const TensorId images =
      b.input("images", {batch, config.channels, image, image}, b.base_dtype(), fill::Pixels{});
  const TensorId targets = image_targets(b, config.head);
  b.begin_function();  // BeitModel names what its encoder begins with
  TensorId x = b.local(beit.embedded(images));
  const TensorId shared =
      config.biases_together ? beit.new_table("shared.relative_position_bias_table") : no_tensor;
  for (std::int64_t i = 0; i < config.depth; ++i) x = beit.block(i, x, shared);
  if (!config.pools_patches) x = b.layer_norm("norm", x, config.epsilon);
  const TensorId pooled = beit.pooled(x);
  b.end_function();
  if (config.head == Head::None) return b.finish(mean_loss(b, std::array{x, pooled}));
  return b.finish(classification_loss(
      b, b.linear("head", pooled, config.classes, true, ParameterRole::Head), targets));
}

}  // namespace tidemark
