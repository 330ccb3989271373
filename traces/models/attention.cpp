// From tokens to heads, scores and back, op by op, for each way a framework writes it.
#include "traces/models/attention.h"

#include <cmath>

#include "base/units.h"
#include "traces/models/engine_attention.h"
#include "traces/models/head_norms.h"
#include "traces/models/head_order.h"
#include "traces/models/head_turns.h"
#include "traces/models/sinks.h"

namespace tidemark {
namespace {

Shape heads_of(const TraceBuilder& b, TensorId x, std::int64_t heads, std::int64_t head_width) {
  return {b.shape(x)[0], heads, b.shape(x)[1], head_width};
}

// [batch, tokens, (heads + 2·key heads)·d] → three slices, each a view by heads.
Heads slice_heads(TraceBuilder& b, const std::string& name, TensorId qkv, std::int64_t d,
                  const AttentionConfig& config) {
  const std::int64_t key_heads = config.key_heads ? config.key_heads : config.heads;
  std::int64_t offset = 0;
  const auto slice = [&](const std::string& part, std::int64_t heads) {
    const Shape rows = {b.shape(qkv)[0], b.shape(qkv)[1], heads * d};
    const TensorId x = b.select(part, qkv, rows, LayoutTransform::Slice, offset);
    offset += heads * d;
    return b.view(part + ".heads", x, heads_of(b, x, heads, d), LayoutTransform::SplitHeads);
  };
  const TensorId q = slice(name + ".q", config.heads), k = slice(name + ".k", key_heads);
  return {q, k, slice(name + ".v", key_heads)};
}

// [batch, tokens, heads·3·d] → [batch, heads, tokens, 3·d] → three views of it.
Heads chunk_heads(TraceBuilder& b, const std::string& name, TensorId qkv, std::int64_t d,
                  const AttentionConfig& config) {
  const TensorId packed = b.view(name + ".heads", qkv, heads_of(b, qkv, config.heads, 3 * d),
                                 LayoutTransform::SplitHeads);
  const Shape head = heads_of(b, qkv, config.heads, d);
  const auto parts = b.split(name + ".unpack", packed, {head, head, head}, {"q", "k", "v"});
  return {parts[0], parts[1], parts[2]};
}

// [batch, tokens, (heads + 2)·d] → heads of q, a view, and one of keys and of values, looked up.
Heads one_key_head(TraceBuilder& b, const std::string& name, TensorId qkv, std::int64_t d,
                   const AttentionConfig& config) {
  const std::int64_t batch = b.shape(qkv)[0], tokens = b.shape(qkv)[1];
  const TensorId all = b.view(name + ".heads", qkv, heads_of(b, qkv, config.heads + 2, d),
                              LayoutTransform::SplitHeads);
  const auto found = [&](const char* which, std::int64_t head) {
    return b.copy(name + which, all, {batch, 1, tokens, d}, LayoutTransform::Slice,
                  {{AttributeKey::Offset, static_cast<double>(head)}});
  };
  const TensorId q = b.select(name + ".q", all, {batch, config.heads, tokens, d});
  const TensorId k = found(".k", config.heads);
  return {q, k, found(".v", config.heads + 1)};
}

// [batch, tokens, groups·(heads of q + 2)·d] → copies, in which each head has keys and values.
Heads grouped_heads(TraceBuilder& b, const std::string& name, TensorId qkv, std::int64_t d,
                    const AttentionConfig& config) {
  const std::int64_t batch = b.shape(qkv)[0], tokens = b.shape(qkv)[1];
  const std::int64_t groups = config.key_heads, of_group = config.heads / groups;
  const Shape all = {batch, config.heads, tokens, d}, one = {batch, groups, tokens, d};
  const TensorId packed =
      b.view(name + ".groups", qkv, heads_of(b, qkv, groups, (of_group + 2) * d),
             LayoutTransform::SplitHeads);
  const TensorId part = b.select(name + ".q.part", packed, one.with_back(of_group * d));
  TensorId q =
      b.copy(name + ".q", part, {batch, tokens, config.heads * d}, LayoutTransform::MergeHeads);
  q = b.view(name + ".q.heads", q, all, LayoutTransform::SplitHeads);
  const auto repeated = [&](const std::string& which, std::int64_t place) {
    const TensorId found = b.copy(name + which, packed, one, LayoutTransform::Slice,
                                  {{AttributeKey::Offset, static_cast<double>(place * d)}});
    return b.repeat_heads(name + which + ".repeat", found, all);
  };
  const TensorId k = repeated(".k", of_group);
  return {q, k, repeated(".v", of_group + 1)};
}

// Beside each other in each head: [batch, heads, tokens, 3·d] → three views, each selected.
Heads select_by_head(TraceBuilder& b, const std::string& name, TensorId qkv, std::int64_t d,
                     const AttentionConfig& config) {
  const TensorId packed = b.view(name + ".heads", qkv, heads_of(b, qkv, config.heads, 3 * d),
                                 LayoutTransform::SplitHeads);
  const Shape head = heads_of(b, qkv, config.heads, d);
  const auto part = [&](const char* which, std::int64_t offset) {
    return b.select(name + which, packed, head, LayoutTransform::Slice, offset);
  };
  const TensorId q = part(".q", 0), k = part(".k", d);
  return {q, k, part(".v", 2 * d)};
}

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

struct Projection {
  std::int64_t heads, head_width;
  bool bias;
  bool is_normed = false;
  double factor = 0;
};

TensorId project(TraceBuilder& b, const std::string& name, TensorId x, const Projection& to,
                 const AttentionConfig& config) {
  TensorId y = b.linear(name, x, to.heads * to.head_width, to.bias);
  if (to.is_normed) y = b.rms_norm(name + "_norm", y, config.head_norm_epsilon, config.head_gain);
  if (to.factor != 0) y = b.scale(name + ".scale", y, to.factor);
  const Shape heads = heads_of(b, x, to.heads, to.head_width);
  y = b.view(name + ".heads", y, heads, LayoutTransform::SplitHeads);
  return config.makes_dense ? b.copy(name + ".dense", y, heads) : y;
}

// [batch, keys, heads·2·d] → keys and values, beside each other in each head; and q of x.
Heads heads_beside_memory(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t d,
                          const AttentionConfig& config) {
  const TensorId kv = b.linear(name + ".kv", config.memory, config.heads * 2 * d, config.qkv_bias);
  const TensorId packed = b.view(name + ".kv.heads", kv, heads_of(b, kv, config.heads, 2 * d),
                                 LayoutTransform::SplitHeads);
  const Shape head = heads_of(b, kv, config.heads, d);
  const auto parts = b.split(name + ".unpack", packed, {head, head}, {"k", "v"});
  return {project(b, name + ".q", x, {config.heads, d, config.qkv_bias}, config), parts[0],
          parts[1]};
}

// A batched product wants [batch·heads, tokens, d] in one step from head to head, as the heads of
// one sample are (nn.MultiheadAttention copies its packed ones all the same; of other packed ones
// it is not measured); grouped heads are repeated first, which makes that copy too.
TensorId dense_heads(TraceBuilder& b, const std::string& name, TensorId x,
                     const AttentionConfig& config) {
  const Shape s = b.shape(x);
  const std::int64_t heads = config.heads;
  // One head of one sample is only expanded, and the product reads it where it lies.
  const bool is_view = s[0] == 1 && s[1] == 1 && b[x].dtype == b.compute_dtype();
  if (is_view && b.framework().copies_heads) return x;
  if (s[1] != heads) return b.repeat_heads(name + ".repeat", x, {s[0], heads, s[2], s[3]});
  const bool is_even =
      heads == 1 || (s[0] == 1 && !config.packed) || head_order(b, x) == HeadOrder::ByHead;
  return b.framework().copies_heads && !is_even ? b.copy(name + ".dense", x, s) : x;
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

// One expression of the code: what it reads has its name until all of it is done. PyTorch has a
// kernel that reads fp16 and writes fp32, but none that reads bf16 (softmax() of SoftMax.cpp), and
// autocast casts whatever has 16 bits.
TensorId probabilities(TraceBuilder& b, const std::string& name, TensorId scores, DType of_query,
                       const AttentionConfig& config) {
  const bool is_half = size_of(b[scores].dtype) == 2;
  const bool by_autocast = is_amp(precision_of(b.step())) && !config.softmax_in_fp32;
  const bool is_copied =
      b.framework().copies_heads &&
      ((config.softmax_in_fp32 && b[scores].dtype == DType::BFloat16) || (by_autocast && is_half));
  b.begin_function();
  b.local(scores);
  if (config.adds_in_place || is_copied)
    scores = b.cast(name + ".scores.float", scores, DType::Float32);
  TensorId weights = b.softmax(name + ".softmax", scores, config.softmax_in_fp32);
  if (config.probabilities_as_query) weights = b.cast(name + ".softmax.cast", weights, of_query);
  b.end_function();
  return weights;
}

TensorId math_attention(TraceBuilder& b, const std::string& name, Heads heads,
                        const AttentionConfig& config) {
  const Shape s = b.shape(heads.q);
  const std::int64_t d = s[3], keys = b.shape(heads.k)[2];
  const double factor =
      config.score_factor != 0 ? config.score_factor : 1 / std::sqrt(static_cast<double>(d));
  TensorId q = heads.q;
  if (config.scales_query) q = b.local(b.scale(name + ".scale", q, factor));
  q = dense_heads(b, name + ".q", q, config);
  const TensorId k = dense_heads(b, name + ".k", heads.k, config);
  // repeat_kv() comes first; what a product makes dense, when it reads.
  const bool repeats_values = b.shape(heads.v)[1] != config.heads && !config.broadcasts_keys;
  TensorId v = repeats_values ? dense_heads(b, name + ".v", heads.v, config) : heads.v;
  const TensorId k_transposed = b.view(name + ".k.transposed", k, {s[0], b.shape(k)[1], d, keys},
                                       LayoutTransform::ChannelsFirst);
  TensorId scores = b.matmul(name + ".scores", q, k_transposed);
  if (!config.scales_query && config.scales_scores)
    scores = b.scale(name + ".scale", scores, factor);
  if (config.score_cap > 0) scores = b.capped(name + ".cap", scores, config.score_cap);
  b.begin_function();
  if (config.names_products) b.local(scores);
  if (config.bias != no_tensor)
    scores = config.adds_in_place ? b.add_in_place(name + ".bias", scores, config.bias)
                                  : b.add(name + ".bias", scores, config.bias);
  if (config.mask != no_tensor) scores = masked(b, name, scores, config.mask);
  TensorId made = config.has_sinks ? probabilities_beside_sinks(b, name, scores)
                                   : probabilities(b, name, scores, b[heads.q].dtype, config);
  b.end_function();
  if (config.clears_padding) made = without_padding(b, name, made, config.mask);
  if (config.names_scores) b.local(scores);
  const TensorId weights = b.local(b.dropout(name + ".dropout", made, config.dropout));
  if (config.returns_weights) b.local_of_caller(weights);
  if (config.block_returns_weights) b.local_of_stack(weights);
  if (!repeats_values) v = dense_heads(b, name + ".v", v, config);
  const TensorId mixed = b.matmul(name + ".mix", weights, v);
  const Shape merged = {s[0], s[2], config.heads * b.shape(v)[3]};
  return b.framework().copies_heads && config.heads > 1
             ? b.copy(name + ".merge", mixed, merged, LayoutTransform::MergeHeads)
             : b.view(name + ".merge", mixed, merged, LayoutTransform::MergeHeads);
}

// [..., d] → [..., d up to a multiple of `unit`], zeros behind.
TensorId padded(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t unit) {
  const Shape s = b.shape(x);
  const std::int64_t width = round_up(s.back(), unit);
  if (width == s.back()) return x;
  const Shape ones = {1, 1, 1, width - s.back()};
  const TensorId zeros = b.input(name + ".zeros", ones, b[x].dtype, fill::Constant{0});
  return b.concat(name, std::array{x, zeros}, s.with_back(width));
}

// PyTorch's own composition, in fp32 whatever the dtype of q: _scaled_dot_product_attention_math.
TensorId composed_attention(TraceBuilder& b, const std::string& name, const Heads& heads,
                            const AttentionConfig& config) {
  const Shape s = b.shape(heads.q);
  const std::int64_t d = s[3], keys = b.shape(heads.k)[2];
  const double usual = 1 / std::sqrt(static_cast<double>(d));
  const double root = std::sqrt(config.score_factor != 0 ? config.score_factor : usual);
  const auto wide = [&](TensorId x, const char* which) {
    return b.cast(name + which + std::string(".upcast"), b.to_compute(x), DType::Float32);
  };
  const auto repeated = [&](TensorId x, const char* which) {
    const Shape of = b.shape(x);
    return of[1] == config.heads ? x
                                 : b.repeat_heads(name + which + std::string(".repeat"), x,
                                                  {of[0], config.heads, of[2], of[3]});
  };
  const auto dense = [&](TensorId x, const char* which) {
    return head_order(b, x) == HeadOrder::ByHead
               ? x
               : b.copy(name + which + std::string(".dense"), x, b.shape(x));
  };
  const DType result = b[b.to_compute(heads.q)].dtype;
  TensorId q = b.scale(name + ".q.scale", wide(heads.q, ".q"), root);
  q = dense(q, ".q");
  TensorId k = wide(heads.k, ".k");
  if (!config.broadcasts_keys) k = repeated(k, ".k");
  k = repeated(b.scale(name + ".k.scale", k, root), ".k");
  k = dense(k, ".k");
  const TensorId k_transposed = b.view(name + ".k.transposed", k, {s[0], config.heads, d, keys},
                                       LayoutTransform::ChannelsFirst);
  TensorId scores = b.product(name + ".scores", q, k_transposed);
  if (config.bias != no_tensor)
    scores = b.add_in_place(name + ".bias", scores, b.to_compute(config.bias));
  if (config.mask != no_tensor) scores = b.add_in_place(name + ".mask", scores, config.mask);
  TensorId weights = b.softmax(name + ".softmax", scores, true);
  weights = b.dropout(name + ".dropout", weights, config.dropout);
  const TensorId v = dense(repeated(wide(heads.v, ".v"), ".v"), ".v");
  TensorId mixed = b.product(name + ".mix", weights, v);
  mixed = b.cast(name + ".mix.cast", mixed, result);
  return b.copy(name + ".merge", mixed, {s[0], s[2], config.heads * b.shape(v)[3]},
                LayoutTransform::MergeHeads);
}

// A fused kernel takes one tensor to add to the scores, and masks the future by itself. Its rows
// start at whole multiples of 16 bytes.
TensorId fused_bias(TraceBuilder& b, const std::string& name, const AttentionConfig& config,
                    AttentionKernel kernel) {
  const bool by_itself = config.causal && kernel == AttentionKernel::Flash;
  const bool is_biased = config.bias != no_tensor;
  TensorId mask = by_itself ? no_tensor : config.mask;
  if (mask == no_tensor && !is_biased) return mask;
  if (mask == no_tensor) {
    const bool is_view = b[config.bias].storage != config.bias;
    mask = config.by_shared_code && is_view
               ? b.copy(name + ".bias.dense", config.bias, b.shape(config.bias))
               : config.bias;
  } else {
    if (b[mask].dtype == DType::Bool) {
      const TensorId hidden = b.cast(name + ".mask.hidden", mask, b.compute_dtype());
      mask = b.scale(name + ".mask.far_below", hidden, far_below);
    }
    mask = b.to_compute(mask);
    if (config.converts_mask && b.shape(mask)[0] == 1)
      mask = for_all_samples(b, name + ".mask.numbers", mask);
    if (is_biased) mask = b.add(name + ".mask.bias", mask, config.bias);
  }
  mask = b.to_compute(mask);
  if (kernel != AttentionKernel::MemoryEfficient) return mask;
  const TensorId whole = padded(b, name + ".mask.padded", mask, 8);
  return whole == mask ? mask : b.select(name + ".mask.rows", whole, b.shape(mask));
}

// The flash kernel takes heads of a multiple of 8; what it returns is cut, and then copied for the
// projection.
TensorId fused_attention(TraceBuilder& b, const std::string& name, Heads heads,
                         const AttentionConfig& config, AttentionKernel kernel) {
  const Shape s = b.shape(heads.q);
  const Framework& framework = b.framework();
  const bool is_turned = puts_samples_first(b);
  if (is_turned) heads = with_samples_first(b, name, heads);
  const bool is_sdpa = framework.picks_fused_attention && config.calls_sdpa;
  const bool is_flash = kernel == AttentionKernel::Flash;
  const TensorId bias = fused_bias(b, name, config, kernel);
  // The shared code of older versions, and beside a mask what models have of their own.
  const bool makes_contiguous =
      is_sdpa && (config.by_shared_code ? framework.contiguous_heads
                                        : config.dense_beside_mask && bias != no_tensor);
  // repeat_kv of one head only expands it: what reads that without a copy finds the head itself,
  // and a cast copies it for all heads.
  const auto expands = [&](TensorId x) {
    const bool is_copied = b[x].dtype != b.compute_dtype() || makes_contiguous ||
                           (is_flash && b.shape(x).back() % 8 != 0);
    return b.shape(x)[1] == 1 && !is_copied;
  };
  const bool both_expand = expands(heads.k) && expands(heads.v);
  const bool one_expands = (expands(heads.k) || expands(heads.v)) && !is_compiled(framework);
  // A kernel takes as many heads of keys as of values: of copies next to such a head the first.
  const auto first_of_copies = [&](TensorId x, const std::string& which) {
    const Shape of = b.shape(x);
    x = b.repeat_heads(which + ".repeat", b.to_compute(x), {of[0], config.heads, of[2], of[3]});
    return b.select(which + ".first", x, of);
  };
  const auto ready = [&](TensorId x, const char* which) {
    const Shape of = b.shape(x);
    const bool repeats =
        framework.repeats_key_heads || config.repeats_key_heads || bias != no_tensor;
    const bool is_repeated =
        is_sdpa && repeats && of[1] != config.heads && !both_expand && !config.broadcasts_keys;
    if (is_repeated && one_expands)
      x = expands(x) ? x : first_of_copies(x, name + which);
    else if (is_repeated)
      x = b.repeat_heads(name + which + std::string(".repeat"), x,
                         {of[0], config.heads, of[2], of[3]});
    else if (makes_contiguous && head_order(b, x) == HeadOrder::ByToken)
      x = b.copy(name + which + std::string(".dense"), x, of);
    x = b.to_compute(x);
    return is_sdpa && is_flash ? padded(b, name + which + std::string(".padded"), x, 8) : x;
  };
  const TensorId q = ready(heads.q, ".q"), k = ready(heads.k, ".k"), v = ready(heads.v, ".v");
  const bool is_padded = b.shape(q).back() != s.back();
  const double usual = 1 / std::sqrt(static_cast<double>(s.back()));
  const double wanted = config.score_factor != 0 ? config.score_factor : usual;
  const double of_kernel = 1 / std::sqrt(static_cast<double>(b.shape(q).back()));
  const bool is_causal = config.causal && (is_flash || bias == no_tensor);
  TensorId mixed =
      b.flash_attention(name + ".flash", q, k, v, is_causal, bias, is_causal ? config.window : 0,
                        {.memory_efficient = is_sdpa && !is_flash,
                         .factor = wanted == of_kernel ? 1 : wanted / of_kernel});
  if (is_padded) mixed = b.select(name + ".cut", mixed, s.with_back(b.shape(heads.v).back()));
  const Shape of = b.shape(mixed), merged = {of[0], of[2], of[1] * of[3]};
  // Flash writes in the order of q, the other kernel by token.
  const bool copies =
      framework.transformer_engine ? is_turned : is_flash && head_order(b, q) == HeadOrder::ByHead;
  return copies ? b.copy(name + ".merge", mixed, merged, LayoutTransform::MergeHeads)
                : b.view(name + ".merge", mixed, merged, LayoutTransform::MergeHeads);
}

}  // namespace

TensorId for_all_samples(TraceBuilder& b, const std::string& name, TensorId mask) {
  const Shape s = b.shape(mask);
  return b.concat(name, std::array{mask}, {sequences_of(b.step()), s[1], s[2], s[3]});
}

AttentionKernel attention_kernel(const TraceBuilder& b, const AttentionConfig& config,
                                 std::int64_t head_width, bool masked) {
  switch (b.step().attention.value_or(Attention::Sdpa)) {
    case Attention::Math:
      return AttentionKernel::Eager;
    case Attention::Flash:
      return AttentionKernel::Flash;
    case Attention::MemoryEfficient:
      return AttentionKernel::MemoryEfficient;
    case Attention::Sdpa:
      break;
  }
  if (!config.calls_sdpa) return AttentionKernel::Eager;
  if (!b.framework().picks_fused_attention)
    return config.bias != no_tensor ? AttentionKernel::Eager : AttentionKernel::Flash;
  const bool repeats = b.framework().repeats_key_heads || config.repeats_key_heads || masked;
  const bool grouped = config.key_heads > 0 && config.key_heads != config.heads;
  return sdpa_kernel({.dtype = b.compute_dtype(),
                      .head_width = head_width,
                      .value_width = config.value_width,
                      .grouped = grouped && !repeats && !b.framework().efficient_groups,
                      .broadcasts = config.broadcasts_keys && !b.framework().efficient_groups,
                      .masked = masked},
                     b.step().capability.value_or(80));
}

Heads project_heads(TraceBuilder& b, const std::string& name, TensorId x,
                    const AttentionConfig& config) {
  const std::int64_t width = b.shape(x).back();
  const std::int64_t d = config.head_width ? config.head_width : width / config.heads;
  const std::int64_t key_heads = config.key_heads ? config.key_heads : config.heads;
  // Adapters sit beside separate projections.
  const bool adapted = b.is_lora_target("q") || b.is_lora_target("k") || b.is_lora_target("v");
  const bool unpacks_for_adapters =
      config.unpacking == Unpacking::Split || config.unpacking == Unpacking::Select;
  if (config.packed && !(adapted && unpacks_for_adapters)) {
    const std::int64_t width_of_all = (config.heads + 2 * key_heads) * d;
    const TensorId qkv = b.linear(name + ".qkv", x, width_of_all, config.qkv_bias);
    switch (config.unpacking) {
      case Unpacking::Slices:
        return slice_heads(b, name, qkv, d, config);
      case Unpacking::ByHead:
        return chunk_heads(b, name, qkv, d, config);
      // Falcon's code names what it unpacks.
      case Unpacking::SelectByHead:
        return select_by_head(b, name, b.local(qkv), d, config);
      case Unpacking::OneKeyHead:
        return one_key_head(b, name, b.local(qkv), d, config);
      case Unpacking::Grouped:
        return grouped_heads(b, name, b.local(qkv), d, config);
      case Unpacking::Split:
      case Unpacking::Select:
        break;
    }
    return unpack(b, name, qkv, config);
  }
  if (config.packs_memory) return heads_beside_memory(b, name, x, d, config);
  const bool is_normed = config.head_norm == HeadNorm::WholeWidth;
  const TensorId read = config.memory != no_tensor ? config.memory : x;
  const bool bias = config.qkv_bias;
  const TensorId q =
      project(b, name + ".q", x, {config.heads, d, bias, is_normed, config.query_factor}, config);
  const TensorId k =
      project(b, name + ".k", read, {key_heads, d, bias && config.key_bias, is_normed}, config);
  return {q, k, project(b, name + ".v", read, {key_heads, d, bias}, config)};
}

namespace {

AttentionKernel kernel_of(const TraceBuilder& b, TensorId q, const AttentionConfig& config) {
  const bool masked = config.mask != no_tensor || config.bias != no_tensor;
  return config.kernel ? *config.kernel : attention_kernel(b, config, b.shape(q)[3], masked);
}

}  // namespace

TensorId attention_core(TraceBuilder& b, const std::string& name, TensorId q, TensorId k,
                        TensorId v, const AttentionConfig& config) {
  const AttentionKernel kernel = kernel_of(b, q, config);
  const Heads heads = in_engine_layout(b, name, {q, k, v});
  switch (kernel) {
    case AttentionKernel::Eager:
      return math_attention(b, name, heads, config);
    case AttentionKernel::Composed:
      return composed_attention(b, name, heads, config);
    case AttentionKernel::Flash:
    case AttentionKernel::MemoryEfficient:
      break;
  }
  return fused_attention(b, name, heads, config, kernel);
}

TensorId self_attention(TraceBuilder& b, const std::string& name, TensorId x,
                        const AttentionConfig& config) {
  const std::int64_t width = b.shape(x).back();
  b.begin_function();
  b.local(x);
  Heads heads = project_heads(b, name, x, config);
  const auto norm_heads = [&] {
    heads.q = normed_heads(b, name + ".q_norm", heads.q, config);
    heads.k = normed_heads(b, name + ".k_norm", heads.k, config);
  };
  if (!config.norms_turned) norm_heads();
  heads = turned_heads(b, name, heads, config);
  if (config.norms_turned) norm_heads();
  heads.k = b.behind(name + ".k", config.prefix.keys, heads.k);
  heads.v = b.behind(name + ".v", config.prefix.values, heads.v);
  // A q that is scaled takes the name of what it is made of.
  const bool is_renamed = config.scales_query && !config.packed &&
                          kernel_of(b, heads.q, config) == AttentionKernel::Eager;
  if (!is_renamed) b.local(heads.q);
  b.local(heads.k), b.local(heads.v);
  const TensorId mixed = attention_core(b, name, heads.q, heads.k, heads.v, config);
  const TensorId y =
      b.linear(name + "." + std::string(config.out_name), mixed, width, config.out_bias);
  const TensorId dropped = b.dropout(name + ".drop", y, config.out_dropout);
  b.end_function();
  return dropped;
}

}  // namespace tidemark
