// Swin as in models/swin_transformer.py of microsoft/Swin-Transformer, and modeling_swin.py of
// Hugging Face transformers, which pads what does not fit. Tokens stay [batch, tokens, width];
// attention sees [batch · windows, window², width]:
//   norm ─ cut windows ─ qkv ─ scores + bias (+ mask) ─ softmax ─ mix ─ proj ─ merge windows ─ add
#include <fmt/format.h>

#include "base/units.h"
#include "traces/models/decoder_parts.h"
#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

/// What the blocks of one stage share.
struct Stage {
  std::int64_t width = 0, heads = 0, mlp = 0;
  std::int64_t side = 0;    ///< tokens per side of the grid
  std::int64_t padded = 0;  ///< … up to whole windows
  std::int64_t window = 0;  ///< tokens per side of a window, at most the grid's
};

double as_double(std::int64_t n) { return static_cast<double>(n); }

// Half a grid is half of it padded to an even one. Microsoft's code pads nothing.
Stage stage_of(const SwinConfig& config, std::int64_t image, std::size_t s) {
  Stage stage{.width = config.width << s, .heads = config.heads[s]};
  stage.side = round_up(image, config.patch) / config.patch;
  for (std::size_t before = 0; before < s; ++before) stage.side = (stage.side + 1) / 2;
  stage.window = std::min(config.window, stage.side);
  stage.padded = round_up(stage.side, stage.window);
  stage.mlp = static_cast<std::int64_t>(as_double(stage.width) * config.mlp_ratio);
  const bool fits = image % (config.patch << s) == 0 && stage.padded == stage.side;
  const bool halves = s + 1 == config.depths.size() || stage.side % 2 == 0;
  const bool pads = !config.fused_shift;
  if (!pads && !(fits && halves))
    throw UsageError(
        fmt::format("image size {}: {} x {} tokens in stage {} cannot be cut into windows of {} "
                    "and then halved; use a multiple of {}",
                    image, stage.side, stage.side, s + 1, config.window,
                    config.patch * config.window << (config.depths.size() - 1)));
  return stage;
}

// Zeros behind a grid [batch, from², width], or what is behind it cut off.
TensorId resized(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t from,
                 std::int64_t to) {
  if (from == to) return x;
  const Shape s = b.shape(x);
  const OutputSpec y{"", {s[0], to * to, s[2]}, b[x].dtype};
  return b.opaque(name, std::array{x}, std::span(&y, 1),
                  {.operation = from < to ? "aten::constant_pad_nd" : "aten::clone",
                   .gradients = 1,
                   .computes = Formula::PadOrCrop});
}

// The table holds one bias per head for every difference of two places in a window.
TensorId relative_bias(TraceBuilder& b, const std::string& name, const Stage& stage) {
  const std::int64_t tokens = stage.window * stage.window, span = 2 * stage.window - 1;
  const TensorId table =
      b.parameter(name + ".relative_position_bias_table", {span * span, stage.heads});
  const TensorId places = b.input(name + ".relative_position_index", {tokens * tokens},
                                  DType::Int64, fill::WindowDifferences{});
  const TensorId biases = b.embedding(name + ".relative_bias", places, table);
  return b.copy(name + ".relative_bias.heads", biases, {1, stage.heads, tokens, tokens},
                LayoutTransform::ChannelsFirst);
}

// transformers 5 rewrote its Swin, which calls the attention of all others.
bool is_rewritten(const TraceBuilder& b, const SwinConfig& config) {
  return !config.fused_shift && b.framework().shared_attention;
}

TensorId window_attention(TraceBuilder& b, const std::string& name, TensorId x, const Stage& stage,
                          const SwinConfig& config, std::int64_t shift) {
  const std::int64_t per_side = stage.padded / stage.window, tokens = stage.window * stage.window;
  const bool shares = is_rewritten(b, config);
  AttentionConfig attention{.heads = stage.heads,
                            .packed = config.packed_qkv,
                            .unpacking = Unpacking::Select,
                            .scales_query = config.scales_query,
                            .qkv_bias = config.qkv_bias,
                            .softmax_in_fp32 = shares,
                            .probabilities_as_query = shares,
                            .dropout = b.dropout_probability(config.attention_dropout),
                            .calls_sdpa = shares,
                            .by_shared_code = shares};
  b.begin_function();  // which names what is added to scores
  attention.bias = relative_bias(b, name, stage);
  if (shift > 0) {
    const TensorId mask = b.input(name + ".window_mask", {per_side * per_side, 1, tokens, tokens},
                                  b.base_dtype(), fill::SeamMask{shift});
    if (shares) {
      const Shape windows = {1, per_side * per_side, tokens, tokens};
      const TensorId of_image = b.view(name + ".window_mask.image", mask, windows);
      const TensorId of_all = b.local(for_all_samples(b, name + ".window_mask.all", of_image));
      const TensorId each =
          b.view(name + ".window_mask.each", of_all, {b.shape(x)[0], 1, tokens, tokens});
      attention.bias = b.add(name + ".relative_bias.mask", attention.bias, each);
    } else {
      attention.mask = mask;
    }
  }
  if (shares) b.local(attention.bias);
  const TensorId y = self_attention(b, name, x, attention);
  b.end_function();
  return y;
}

/// Of one layer's attention: what the residual adds, and what the code's variables name.
struct AttentionHalf {
  TensorId y{};
  TensorId normed{};                ///< up to the variable's next value
  std::vector<TensorId> variables;  ///< until the layer returns
};

void named_until_now(TraceBuilder& b, std::span<const TensorId> variables) {
  b.begin_function();
  for (const TensorId variable : variables) b.local(variable);
  b.end_function();
}

// norm1, windows, attention, windows undone. Microsoft's code has fewer variables than
// transformers' hidden_states_windows, attention_output, attention_windows, and, up to version 4,
// shifted_hidden_states and shifted_windows.
AttentionHalf attention_half(TraceBuilder& b, const std::string& name, TensorId x,
                             const Stage& stage, const SwinConfig& config, std::int64_t shift) {
  const Shape tokens = {b.shape(x)[0], stage.padded * stage.padded, b.shape(x)[2]};
  const std::int64_t area = stage.window * stage.window;
  const Shape windows = {tokens[0] * tokens[1] / area, area, tokens[2]};
  const bool rolls = shift > 0 && !config.fused_shift;
  const Attribute window{AttributeKey::Window, as_double(stage.window)};
  const Attribute shifted{AttributeKey::Shift, as_double(shift)};
  const Attribute shifted_too{AttributeKey::Shift, as_double(rolls ? 0 : shift)};

  const TensorId normed = resized(
      b, name + ".pad", b.layer_norm(name + ".norm1", x, config.epsilon), stage.side, stage.padded);
  const TensorId rolled =
      rolls ? b.copy(name + ".roll", normed, tokens, LayoutTransform::Roll, {shifted}) : normed;
  const bool is_one_window = stage.padded == stage.window;  // whose tokens are in order
  const TensorId cut = is_one_window ? b.view(name + ".windows", rolled, windows)
                                     : b.copy(name + ".windows", rolled, windows,
                                              LayoutTransform::CutWindows, {window, shifted_too});
  const TensorId attended = window_attention(b, name + ".attn", cut, stage, config, shift);
  const bool shares = is_rewritten(b, config);
  const double dropout = config.fused_shift || shares ? config.dropout : config.attention_dropout;
  const TensorId kept = b.dropout(name + ".drop", attended, b.dropout_probability(dropout));
  const TensorId merged = is_one_window
                              ? b.view(name + ".merge", kept, tokens)
                              : b.copy(name + ".merge", kept, tokens, LayoutTransform::JoinWindows,
                                       {window, shifted_too});
  const TensorId unrolled =
      rolls ? b.copy(name + ".unroll", merged, tokens, LayoutTransform::Unroll, {shifted}) : merged;
  AttentionHalf half{.y = resized(b, name + ".cut", unrolled, stage.padded, stage.side),
                     .normed = normed,
                     .variables = {cut, kept}};
  if (shares)
    half.variables.push_back(half.y);
  else if (!config.fused_shift)
    half.variables.insert(half.variables.end(), {rolled, merged, half.y});
  else if (shift == 0)
    half.variables.push_back(merged);
  return half;
}

// A module's input lives while it runs: of the whole MLP, or of its first half.
TensorId mlp_half(TraceBuilder& b, const std::string& name, TensorId x, const Stage& stage,
                  const SwinConfig& config) {
  const double dropout = b.dropout_probability(config.dropout);
  const TensorId normed = b.layer_norm(name + ".norm2", x, config.epsilon);
  TensorId y = b.linear(name + ".mlp.fc1", normed, stage.mlp);
  y = activation(b, name + ".mlp", y, config.activation);
  const bool is_one = config.fused_shift || is_rewritten(b, config);
  if (!is_one) named_until_now(b, std::array{normed});
  y = b.dropout(name + ".mlp.drop1", y, config.drops_hidden ? dropout : 0);
  y = b.linear(name + ".mlp.fc2", y, stage.width);
  if (is_one && !config.fused_shift) named_until_now(b, std::array{normed});
  y = b.dropout(name + ".mlp.drop2", y, dropout);
  if (config.fused_shift) named_until_now(b, std::array{normed});
  return y;
}

TensorId block(TraceBuilder& b, const std::string& name, TensorId x, const Stage& stage,
               const SwinConfig& config, std::int64_t shift, double drop_path) {
  b.part(Part::F);
  const AttentionHalf half = attention_half(b, name, x, stage, config, shift);
  if (config.fused_shift) named_until_now(b, std::array{half.normed});
  TensorId y = b.drop_path(name + ".drop_path1", half.y, drop_path);
  x = b.residual(name + ".add1", x, y);
  if (!config.fused_shift) named_until_now(b, std::array{half.normed});
  b.part(Part::G);
  y = mlp_half(b, name, x, stage, config);
  y = b.drop_path(name + ".drop_path2", y, config.mlp_drop_path ? drop_path : 0);
  x = b.residual(name + ".add2", x, y);
  named_until_now(b, half.variables);
  return x;
}

// Each 2 × 2 group of tokens becomes one of four times the width, then a linear halves it.
TensorId merge_patches(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t side,
                       const SwinConfig& config) {
  const std::int64_t even = round_up(side, 2);
  x = resized(b, name + ".pad", x, side, even);
  const Shape s = b.shape(x);
  const Shape quarter = {s[0], even / 2, even / 2, s[2]};
  std::vector<TensorId> corners;
  for (int corner = 0; corner < 4; ++corner)
    corners.push_back(b.select(fmt::format("{}.corner{}", name, corner), x, quarter,
                               LayoutTransform::PatchMerging, corner));
  TensorId y = b.concat(name + ".concat", corners, quarter.with_back(4 * s[2]));
  y = b.view(name + ".tokens", y, {s[0], s[1] / 4, 4 * s[2]});
  y = b.layer_norm(name + ".norm", y, config.epsilon);
  return b.linear(name + ".reduction", y, 2 * s[2], false);
}

TensorId embed_patches(TraceBuilder& b, TensorId images, std::int64_t side,
                       const SwinConfig& config) {
  const std::int64_t batch = b.step().batch, tokens = side * side, whole = side * config.patch;
  if (b.shape(images)[2] != whole) {
    const OutputSpec padded{"", {batch, config.channels, whole, whole}, b[images].dtype};
    images = b.opaque("patch_embed.pad", std::array{images}, std::span(&padded, 1),
                      {.operation = "aten::constant_pad_nd", .computes = Formula::PadOrCrop});
  }
  TensorId x = b.conv2d("patch_embed", images, {batch, config.width, side, side}, config.patch,
                        config.patch, 0, 1, true);
  // The norm reads rows of channels, so it makes the transposed view contiguous first.
  x = b.copy("patch_embed.tokens", x, {batch, tokens, config.width}, LayoutTransform::ChannelsLast);
  x = b.layer_norm("patch_embed.norm", x, config.epsilon);
  if (config.absolute_positions)
    x = b.add("pos_add", x, b.parameter("pos_embed", {1, tokens, config.width}));
  return b.dropout("pos_drop", x, b.dropout_probability(config.dropout));
}

}  // namespace

Trace build_swin(const std::string& model, const SwinConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "swin", options);
  const std::int64_t batch = options.batch, image = image_size(options, config.image);
  const std::size_t stages = config.depths.size();
  std::int64_t blocks = 0;
  for (const std::int64_t depth : config.depths) blocks += depth;
  const double drop_path = b.drop_path_probability(config.drop_path);

  const TensorId images =
      b.input("images", {batch, config.channels, image, image}, b.base_dtype(), fill::Pixels{});
  const TensorId targets = image_targets(b, config.head);
  TensorId x = embed_patches(b, images, stage_of(config, image, 0).side, config);
  // The rewritten one checkpoints layers inside of checkpointed stages: of all stages but the one
  // at hand their inputs stay, and of that one its layers'. Here those of all layers stay.
  const bool rewritten = is_rewritten(b, config);
  const bool by_stage = config.checkpoints_stages && !rewritten;
  TensorId beside = no_tensor;  // what a stage returns beside x is named until the next one has run
  for (std::int64_t s = 0, i = 0; s < std::ssize(config.depths); ++s) {
    const Stage stage = stage_of(config, image, static_cast<std::size_t>(s));
    std::vector<TensorId> names = {x};
    if (beside != no_tensor) names.push_back(beside);
    for (std::int64_t k = 0; k < config.depths[static_cast<std::size_t>(s)]; ++k, ++i) {
      const std::string name = fmt::format("stages.{}.blocks.{}", s, k);
      const std::int64_t shift = k % 2 == 1 && stage.window < stage.side ? config.window / 2 : 0;
      const double rate = blocks < 2 ? 0 : drop_path * as_double(i) / as_double(blocks - 1);
      const auto stage_number = static_cast<int>(s);
      b.begin_block(name, x, stage_number, by_stage ? stage_number : -1);
      x = block(b, name, x, stage, config, shift, rate);
      b.end_block();
    }
    beside = x;
    if (s + 1 < std::ssize(config.depths))
      x = merge_patches(b, fmt::format("stages.{}.merge", s), x, stage.side, config);
    if (config.fused_shift) continue;
    if (rewritten) {  // as an image
      names.push_back(beside);
      const Shape rows = b.shape(x);
      beside = b.copy(fmt::format("stages.{}.image", s), x, {rows[0], rows[2], rows[1]},
                      LayoutTransform::ChannelsFirst);
    }
    named_until_now(b, names);
  }
  if (!config.fused_shift) named_until_now(b, std::array{beside});
  x = b.layer_norm("norm", x, config.epsilon);
  const TensorId pooled = b.mean_pool("pool", x, {batch, config.width << (stages - 1)});
  if (config.head == Head::None) return b.finish(mean_loss(b, std::array{x, pooled}));
  const TensorId logits = b.linear("head", pooled, config.classes, true, ParameterRole::Head);
  return b.finish(classification_loss(b, logits, targets));
}

}  // namespace tidemark
