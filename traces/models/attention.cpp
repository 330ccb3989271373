// From tokens to heads, scores and back, op by op, for each way a framework writes it.
#include "traces/models/attention.h"

#include <cmath>

namespace tidemark {
namespace {

// [batch, tokens, 3·width] → three views [batch, heads, tokens, d] of the packed storage.
Heads unpack(TraceBuilder& b, const std::string& name, TensorId qkv,
             const AttentionConfig& config) {
  const std::int64_t batch = b.shape(qkv)[0], tokens = b.shape(qkv)[1];
  const Shape head = {batch, config.heads, tokens, b.shape(qkv)[2] / 3 / config.heads};
  if (config.unpacking == Unpacking::Split) {
    const auto parts = b.split(name + ".unpack", qkv, {head, head, head}, {"q", "k", "v"},
                               LayoutTransform::SplitHeads);
    return {parts[0], parts[1], parts[2]};
  }
  const std::int64_t width = b.shape(qkv)[2] / 3;
  return {b.select(name + ".q", qkv, head, LayoutTransform::SplitHeads),
          b.select(name + ".k", qkv, head, LayoutTransform::SplitHeads, width),
          b.select(name + ".v", qkv, head, LayoutTransform::SplitHeads, 2 * width)};
}

TensorId project(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t heads,
                 std::int64_t head_width, bool bias) {
  const TensorId y = b.linear(name, x, heads * head_width, bias);
  const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1];
  return b.view(name + ".heads", y, {batch, heads, tokens, head_width},
                LayoutTransform::SplitHeads);
}

// A batched product wants [batch·heads, tokens, d] in one piece; grouped heads are repeated first,
// which makes that copy too.
TensorId dense_heads(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t heads) {
  const Shape s = b.shape(x);
  if (s[1] != heads) return b.repeat_heads(name + ".repeat", x, {s[0], heads, s[2], s[3]});
  return b.framework().copies_heads ? b.copy(name + ".dense", x, s) : x;
}

// A mask per window of an image is added to [images, windows, heads, tokens, keys].
TensorId masked(TraceBuilder& b, const std::string& name, TensorId scores, TensorId mask) {
  const Shape s = b.shape(scores), m = b.shape(mask);
  if (m[0] == 1 || m[0] == s[0]) return b.add(name + ".mask", scores, mask);
  const Shape by_image = {s[0] / m[0], m[0], s[1], s[2], s[3]};
  const TensorId per_window = b.view(name + ".mask.windows", mask, {1, m[0], m[1], m[2], m[3]});
  TensorId y = b.view(name + ".scores.windows", scores, by_image);
  y = b.add(name + ".mask", y, per_window);
  return b.view(name + ".masked", y, s);
}

TensorId math_attention(TraceBuilder& b, const std::string& name, Heads heads,
                        const AttentionConfig& config) {
  const Shape s = b.shape(heads.q);
  const std::int64_t d = s[3], keys = b.shape(heads.k)[2];
  const double factor = 1 / std::sqrt(static_cast<double>(d));
  TensorId q = heads.q;
  if (config.scales_query) q = b.local(b.scale(name + ".scale", q, factor));
  q = dense_heads(b, name + ".q", q, config.heads);
  const TensorId k = dense_heads(b, name + ".k", heads.k, config.heads);
  const TensorId k_transposed = b.view(name + ".k.transposed", k, {s[0], config.heads, d, keys},
                                       LayoutTransform::ChannelsFirst);
  TensorId scores = b.matmul(name + ".scores", q, k_transposed);
  if (!config.scales_query) scores = b.scale(name + ".scale", scores, factor);
  if (config.bias != no_tensor) scores = b.add(name + ".bias", scores, config.bias);
  if (config.mask != no_tensor) scores = masked(b, name, scores, config.mask);
  TensorId weights = b.softmax(name + ".softmax", scores, config.softmax_in_fp32);
  if (config.probabilities_as_query)
    weights = b.cast(name + ".softmax.cast", weights, b[heads.q].dtype);
  weights = b.local(b.dropout(name + ".dropout", weights, config.dropout));
  const TensorId v = dense_heads(b, name + ".v", heads.v, config.heads);
  const TensorId mixed = b.matmul(name + ".mix", weights, v);
  const Shape merged = {s[0], s[2], config.heads * b.shape(v)[3]};
  return b.framework().copies_heads
             ? b.copy(name + ".merge", mixed, merged, LayoutTransform::MergeHeads)
             : b.view(name + ".merge", mixed, merged, LayoutTransform::MergeHeads);
}

// A fused kernel takes one tensor to add to the scores, and masks the future by itself.
TensorId fused_bias(TraceBuilder& b, const std::string& name, const AttentionConfig& config) {
  if (config.mask == no_tensor || config.causal) return config.bias;
  if (config.bias == no_tensor) return config.mask;
  return b.add(name + ".mask.bias", config.mask, config.bias);
}

}  // namespace

Heads project_heads(TraceBuilder& b, const std::string& name, TensorId x,
                    const AttentionConfig& config) {
  const std::int64_t width = b.shape(x).back();
  const std::int64_t d = config.head_width ? config.head_width : width / config.heads;
  const std::int64_t key_heads = config.key_heads ? config.key_heads : config.heads;
  // Adapters sit beside separate projections.
  const bool adapted = b.is_lora_target("q") || b.is_lora_target("k") || b.is_lora_target("v");
  if (config.packed && !adapted)
    return unpack(b, name, b.linear(name + ".qkv", x, 3 * config.heads * d, config.qkv_bias),
                  config);
  return {project(b, name + ".q", x, config.heads, d, config.qkv_bias),
          project(b, name + ".k", x, key_heads, d, config.qkv_bias),
          project(b, name + ".v", x, key_heads, d, config.qkv_bias)};
}

TensorId attention_core(TraceBuilder& b, const std::string& name, TensorId q, TensorId k,
                        TensorId v, const AttentionConfig& config) {
  const bool has_bias = config.bias != no_tensor;
  if (b.step().attention.value_or(has_bias ? Attention::Math : Attention::Flash) == Attention::Math)
    return math_attention(b, name, {q, k, v}, config);
  const TensorId mixed = b.flash_attention(name + ".flash", q, k, v, config.causal,
                                           fused_bias(b, name, config), config.window);
  const Shape s = b.shape(mixed);
  return b.view(name + ".merge", mixed, {s[0], s[2], s[1] * s[3]}, LayoutTransform::MergeHeads);
}

TensorId self_attention(TraceBuilder& b, const std::string& name, TensorId x,
                        const AttentionConfig& config) {
  const std::int64_t width = b.shape(x).back();
  b.begin_function();
  Heads heads = project_heads(b, name, x, config);
  if (config.head_norm_epsilon > 0) {
    heads.q = b.rms_norm(name + ".q_norm", heads.q, config.head_norm_epsilon);
    heads.k = b.rms_norm(name + ".k_norm", heads.k, config.head_norm_epsilon);
  }
  if (config.cosine != no_tensor) {
    heads.q = b.rope(name + ".q_rope", heads.q, config.cosine, config.sine);
    heads.k = b.rope(name + ".k_rope", heads.k, config.cosine, config.sine);
  }
  b.local(heads.q), b.local(heads.k), b.local(heads.v);
  const TensorId mixed = attention_core(b, name, heads.q, heads.k, heads.v, config);
  const TensorId y =
      b.linear(name + "." + std::string(config.out_name), mixed, width, config.out_bias);
  b.end_function();
  return y;
}

}  // namespace tidemark
