// MViT and MViTv2 on images, as in mvit/models/attention.py of facebookresearch/mvit and
// slowfast/models of facebookresearch/SlowFast. Attention pools q, k and v by depthwise
// convolutions over the grid before the scores; where a stage begins, q is pooled by two, so the
// tokens become a quarter, the skip path is max-pooled, and the width doubles.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

struct MvitBlock {
  std::string name = {};
  std::int64_t heads = 0;
  std::int64_t attention_width = 0, width_out = 0;
  std::int64_t side = 0;  ///< tokens per side of the grid that comes in
  std::int64_t query_stride = 1, key_stride = 1;
  bool pools_query = false;
  double drop_path = 0;
};

constexpr std::int64_t halving = 2;

std::int64_t pooled_side(std::int64_t side, std::int64_t kernel, std::int64_t stride) {
  return (side + 2 * (kernel / 2) - kernel) / stride + 1;
}

/// Some tokens, the class token first where the model has one; pooling leaves that one alone.
struct Tokens {
  TensorId class_token = no_tensor, grid = no_tensor;
};

Tokens split_class_token(TraceBuilder& b, const std::string& name, TensorId x, bool class_token) {
  if (!class_token) return {no_tensor, x};
  const Shape s = b.shape(x);
  return {b.select(name + ".class", x, {s[0], s[1], 1, s[3]}),
          b.select(name + ".rest", x, {s[0], s[1], s[2] - 1, s[3]}, LayoutTransform::Slice, 1)};
}

TensorId join_class_token(TraceBuilder& b, const std::string& name, Tokens tokens) {
  if (tokens.class_token == no_tensor) return tokens.grid;
  const Shape s = b.shape(tokens.grid);
  return b.concat(name + ".join", std::array{tokens.class_token, tokens.grid},
                  {s[0], s[1], s[2] + 1, s[3]});
}

// x [batch, heads, tokens, d] → depthwise convolution over each head's grid → LayerNorm over d.
TensorId pool_heads(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t side,
                    std::int64_t stride, const MvitConfig& config) {
  const std::int64_t batch = b.shape(x)[0], heads = b.shape(x)[1], d = b.shape(x)[3];
  const std::int64_t out = pooled_side(side, config.pool_kernel, stride);
  Tokens tokens = split_class_token(b, name, x, config.class_token);
  TensorId y = b.copy(name + ".grid", tokens.grid, {batch * heads, d, side, side},
                      LayoutTransform::ChannelsFirst);
  y = b.conv2d(name + ".conv", y, {batch * heads, d, out, out}, config.pool_kernel, stride,
               config.pool_kernel / 2, d, false);
  tokens.grid =
      b.view(name + ".tokens", y, {batch, heads, out * out, d}, LayoutTransform::ChannelsLast);
  return b.layer_norm(name + ".norm", join_class_token(b, name, tokens), config.epsilon);
}

// The skip path halves its grid by a 3 × 3 maximum.
TensorId pool_skip(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t side,
                   const MvitConfig& config) {
  constexpr std::int64_t kernel = halving + 1;
  const std::int64_t batch = b.shape(x)[0], width = b.shape(x)[2];
  const std::int64_t out = pooled_side(side, kernel, halving);
  x = b.view(name + ".head", x, {batch, 1, b.shape(x)[1], width});
  Tokens tokens = split_class_token(b, name, x, config.class_token);
  TensorId y = b.copy(name + ".grid", tokens.grid, {batch, width, side, side},
                      LayoutTransform::ChannelsFirst);
  y = b.max_pool(name + ".max", y, {batch, width, out, out}, kernel, halving);
  tokens.grid =
      b.view(name + ".tokens", y, {batch, 1, out * out, width}, LayoutTransform::ChannelsLast);
  y = join_class_token(b, name, tokens);
  return b.view(name + ".skip", y, {batch, b.shape(y)[2], width});
}

// q · R for one axis: R [side of q, side of k, d] holds the table's row for each distance. einsum
// brings that axis of q to the front, which copies q.
TensorId axis_scores(TraceBuilder& b, const std::string& name, TensorId q, std::int64_t q_side,
                     std::int64_t k_side, LayoutTransform layout_transform) {
  const std::int64_t batch = b.shape(q)[0], heads = b.shape(q)[1], d = b.shape(q)[3];
  const std::int64_t span = 2 * std::max(q_side, k_side) - 1;
  const TensorId table = b.parameter(name, {span, d});
  const TensorId distance =
      b.input(name + ".distance", {q_side, k_side}, DType::Int64, fill::AxisDifferences{});
  const TensorId rows = b.embedding(name + ".rows", distance, table);
  const TensorId turned =
      b.view(name + ".rows.transposed", rows, {q_side, d, k_side}, LayoutTransform::ChannelsFirst);
  const TensorId by_axis =
      b.copy(name + ".q", q, {q_side, batch * heads * q_side, d}, layout_transform);
  return b.matmul(name + ".scores", by_axis, turned);
}

/// The scores of both axes, shaped so that they broadcast to [batch, heads, q rows, q columns, k
/// rows, k columns].
struct AxisScores {
  TensorId rows, columns;
};

AxisScores relative_scores(TraceBuilder& b, const std::string& name, TensorId q,
                           std::int64_t q_side, std::int64_t k_side) {
  const std::int64_t batch = b.shape(q)[0], heads = b.shape(q)[1];
  const TensorId h =
      axis_scores(b, name + ".rel_pos_h", q, q_side, k_side, LayoutTransform::ToRows);
  const TensorId w =
      axis_scores(b, name + ".rel_pos_w", q, q_side, k_side, LayoutTransform::ToColumns);
  return {b.view(name + ".rel_h", h, {batch, heads, q_side, q_side, k_side, 1},
                 LayoutTransform::FromRows),
          b.view(name + ".rel_w", w, {batch, heads, q_side, q_side, 1, k_side},
                 LayoutTransform::FromColumns)};
}

// The sum is written back into the scores, so they and both partial sums live at once.
TensorId add_relative(TraceBuilder& b, const std::string& name, TensorId scores, AxisScores axes) {
  const Shape flat = b.shape(scores), h = b.shape(axes.rows);
  b.begin_function();
  const TensorId grid =
      b.view(name + ".scores.grid", b.local(scores), {h[0], h[1], h[2], h[3], h[4], h[4]});
  const TensorId partial = b.add(name + ".add_h", grid, axes.rows);
  const TensorId sum = b.add(name + ".add_w", partial, axes.columns);
  b.end_function();
  return b.view(name + ".scores.flat", sum, flat);
}

/// Pooled heads, and the sides of their grids.
struct PooledHeads {
  Heads heads;
  std::int64_t q_side, k_side;
};

TensorId math_mix(TraceBuilder& b, const std::string& name, const PooledHeads& pooled,
                  const MvitBlock& block, const MvitConfig& config) {
  const Heads& heads = pooled.heads;
  const Shape q = b.shape(heads.q), k = b.shape(heads.k);
  const double factor = 1 / std::sqrt(static_cast<double>(q[3]));
  TensorId scaled = b.scale(name + ".scale", heads.q, factor);
  // A pooled q is in one piece already.
  if (!block.pools_query && b.framework().copies_heads && q[1] > 1)
    scaled = b.copy(name + ".q.dense", scaled, q);
  const TensorId transposed = b.view(name + ".k.transposed", heads.k, {k[0], k[1], k[3], k[2]},
                                     LayoutTransform::ChannelsFirst);
  TensorId scores = b.matmul(name + ".scores", scaled, transposed);
  if (config.relative_positions)
    scores = add_relative(b, name, scores,
                          relative_scores(b, name, heads.q, pooled.q_side, pooled.k_side));
  const TensorId weights = b.softmax(name + ".softmax", scores);
  return b.matmul(name + ".mix", b.local(weights), heads.v);
}

TensorId flash_mix(TraceBuilder& b, const std::string& name, const PooledHeads& pooled,
                   const MvitConfig& config) {
  const auto& [q, k, v] = pooled.heads;
  if (!config.relative_positions) return b.flash_attention(name + ".flash", q, k, v, false);
  const AxisScores axes = relative_scores(b, name, q, pooled.q_side, pooled.k_side);
  const TensorId bias = b.add(name + ".rel_pos", axes.rows, axes.columns);
  const Shape flat = {b.shape(q)[0], b.shape(q)[1], b.shape(q)[2], b.shape(k)[2]};
  return b.flash_attention(name + ".flash", q, k, v, false, b.view(name + ".bias", bias, flat));
}

TensorId pooling_attention(TraceBuilder& b, const std::string& name, TensorId x,
                           const MvitBlock& block, const MvitConfig& config) {
  b.begin_function();
  const AttentionConfig projection{.heads = block.heads,
                                   .head_width = block.attention_width / block.heads,
                                   .packed = config.packed_qkv,
                                   .unpacking = Unpacking::Select};
  Heads heads = project_heads(b, name, x, projection);
  if (config.packed_qkv) b.local(heads.q);  // "qkv" is a name of its own
  if (block.pools_query)
    heads.q = pool_heads(b, name + ".pool_q", heads.q, block.side, block.query_stride, config);
  heads.k = pool_heads(b, name + ".pool_k", heads.k, block.side, block.key_stride, config);
  heads.v = pool_heads(b, name + ".pool_v", heads.v, block.side, block.key_stride, config);
  b.local(heads.q), b.local(heads.k), b.local(heads.v);
  const PooledHeads pooled{heads, pooled_side(block.side, config.pool_kernel, block.query_stride),
                           pooled_side(block.side, config.pool_kernel, block.key_stride)};
  const Attention asked = b.step().attention.value_or(Attention::Sdpa);
  const bool is_fused =
      asked == Attention::Sdpa ? !config.relative_positions : asked != Attention::Math;
  TensorId y =
      is_fused ? flash_mix(b, name, pooled, config) : math_mix(b, name, pooled, block, config);
  if (config.residual_pooling) y = b.add(name + ".add_q", y, heads.q);
  const Shape merged = {b.shape(y)[0], b.shape(y)[2], block.attention_width};
  y = block.heads > 1 && b.framework().copies_heads
          ? b.copy(name + ".merge", y, merged, LayoutTransform::MergeHeads)
          : b.view(name + ".merge", y, merged, LayoutTransform::MergeHeads);
  y = b.linear(name + ".proj", y, block.attention_width);
  b.end_function();
  return b.dropout(name + ".drop", y, b.dropout_probability(config.dropout));
}

TensorId mlp(TraceBuilder& b, const std::string& name, TensorId x, const MvitBlock& block,
             const MvitConfig& config) {
  const double dropout = b.dropout_probability(config.dropout);
  const auto hidden =
      static_cast<std::int64_t>(static_cast<double>(block.attention_width) * config.mlp_ratio);
  TensorId y = b.linear(name + ".fc1", x, hidden);
  y = b.gelu(name + ".gelu", y);
  y = b.dropout(name + ".drop1", y, dropout);
  y = b.linear(name + ".fc2", y, block.width_out);
  return b.dropout(name + ".drop2", y, dropout);
}

TensorId build_block(TraceBuilder& b, TensorId x, const MvitBlock& block,
                     const MvitConfig& config) {
  const std::string& name = block.name;
  const bool widens = b.shape(x).back() != block.width_out;
  b.part(Part::F);
  TensorId normed = b.layer_norm(name + ".norm1", x, config.epsilon);
  TensorId y = pooling_attention(b, name + ".attn", normed, block, config);
  y = b.drop_path(name + ".drop_path1", y, block.drop_path);
  if (widens && config.widens_in_attention) x = b.linear(name + ".widen", normed, block.width_out);
  if (block.query_stride > 1) x = pool_skip(b, name + ".pool_skip", x, block.side, config);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  normed = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = mlp(b, name + ".mlp", normed, block, config);
  y = b.drop_path(name + ".drop_path2", y, block.drop_path);
  if (widens && !config.widens_in_attention) x = b.linear(name + ".widen", normed, block.width_out);
  return b.residual(name + ".add2", x, y);
}

// What each block is, in order.
std::vector<MvitBlock> plan_blocks(const MvitConfig& config, std::int64_t side, double drop_path) {
  std::vector<MvitBlock> blocks;
  std::int64_t depth = 0;
  for (const std::int64_t of_stage : config.depths) depth += of_stage;
  for (std::size_t s = 0; s < config.depths.size(); ++s) {
    for (std::int64_t k = 0; k < config.depths[s]; ++k) {
      const bool begins = s > 0 && k == 0;
      const bool ends = k + 1 == config.depths[s] && s + 1 < config.depths.size();
      MvitBlock block{.name = fmt::format("blocks.{}", blocks.size()),
                      .heads = config.heads << s,
                      .attention_width = config.width << s};
      block.width_out =
          ends && !config.widens_in_attention ? config.width << (s + 1) : block.attention_width;
      block.side = side;
      block.query_stride = begins ? halving : 1;
      block.key_stride = std::max<std::int64_t>(config.key_stride >> s, 1);
      block.pools_query = begins || config.pools_every_query;
      block.drop_path = depth < 2 ? 0
                                  : drop_path * static_cast<double>(blocks.size()) /
                                        static_cast<double>(depth - 1);
      if (begins) side = pooled_side(side, config.pool_kernel, halving);
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

TensorId embed(TraceBuilder& b, TensorId images, std::int64_t side, const MvitConfig& config) {
  const std::int64_t batch = b.step().batch, patches = side * side;
  TensorId x = b.conv2d("patch_embed", images, {batch, config.width, side, side},
                        config.stem_kernel, config.stem_stride, config.stem_padding, 1, true);
  x = b.view("patch_embed.tokens", x, {batch, patches, config.width},
             LayoutTransform::ChannelsLast);
  const std::int64_t tokens = patches + (config.class_token ? 1 : 0);
  if (config.class_token) {
    const TensorId token = b.parameter("class_token", {1, 1, config.width});
    x = b.concat("tokens", std::array{token, x}, {batch, tokens, config.width});
  }
  if (config.absolute_positions)
    x = b.add("pos_add", x, b.parameter("pos_embed", {1, tokens, config.width}));
  return b.dropout("pos_drop", x, b.dropout_probability(config.dropout));
}

// Reversible couplings need equal shapes in and out: a run of such blocks is one stack.
TensorId build_blocks(TraceBuilder& b, TensorId x, const std::vector<MvitBlock>& blocks,
                      const MvitConfig& config) {
  int stack = -1;
  bool in_stack = false;
  for (const MvitBlock& block : blocks) {
    const bool keeps_shape = block.query_stride == 1 && b.shape(x).back() == block.width_out;
    if (keeps_shape && !in_stack) ++stack;
    in_stack = keeps_shape;
    b.begin_block(block.name, x, keeps_shape ? stack : -1);
    x = build_block(b, x, block, config);
    b.end_block();
  }
  return x;
}

}  // namespace

Trace build_mvit(const std::string& model, const MvitConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "mvit", options);
  const std::int64_t batch = options.batch, image = image_size(options, config.image);
  const std::int64_t padded = image + 2 * config.stem_padding - config.stem_kernel;
  const std::int64_t side = padded < 0 ? 0 : padded / config.stem_stride + 1;
  if (side < 1 << (config.depths.size() - 1))
    throw UsageError(fmt::format("image size {} leaves no tokens in the last of {} stages", image,
                                 config.depths.size()));
  const TensorId images =
      b.input("images", {batch, config.channels, image, image}, b.base_dtype(), fill::Pixels{});
  const TensorId targets = image_targets(b, config.head);
  const auto blocks = plan_blocks(config, side, b.drop_path_probability(config.drop_path));

  TensorId x = build_blocks(b, embed(b, images, side, config), blocks, config);
  x = b.layer_norm("norm", x, config.epsilon);
  const Shape pooled = {batch, b.shape(x).back()};
  x = config.class_token ? b.select("class_output", x, pooled) : b.mean_pool("pool", x, pooled);
  const TensorId logits = b.linear("head", x, config.classes, true, ParameterRole::Head);
  return b.finish(classification_loss(b, logits, targets));
}

}  // namespace tidemark
