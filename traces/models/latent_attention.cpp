// Op by op, as modeling_deepseek_v2.py and modeling_deepseek_v3.py of transformers 4.57 write it,
// and Megatron-LM's core (core/transformer/multi_latent_attention.py).
#include "traces/models/latent_attention.h"

#include <array>

#include "traces/latent_ops.h"
#include "traces/models/titan.h"

namespace tidemark {
namespace {

// original_max_position_embeddings of Megatron-LM's MLATransformerConfig: of the tables that each
// layer makes when it is built.
constexpr std::int64_t usual_positions = 4096;

struct Latent {
  TraceBuilder& b;
  const std::string& name;
  const LatentConfig& latent;
  const AttentionConfig& attention;

  std::int64_t head_width() const { return latent.plain_width + latent.rotary_width; }

  TensorId by_head(const std::string& which, TensorId x, std::int64_t width) const {
    const Shape s = b.shape(x);
    return b.view(name + which, x, {s[0], attention.heads, s[1], width},
                  LayoutTransform::SplitHeads);
  }

  TensorId normed(const char* which, TensorId x) const {
    return latent.norm ? norm(b, name + which, x, *latent.norm, latent.epsilon) : x;
  }

  TensorId queries(TensorId x) const {
    const std::int64_t width = attention.heads * head_width();
    if (latent.query_rank > 0) {
      x = b.linear(name + ".q_a", x, latent.query_rank, attention.qkv_bias);
      x = normed(".q_a_norm", x);
    }
    const TensorId q = b.linear(name + (latent.query_rank > 0 ? ".q_b" : ".q"), x, width, false);
    return by_head(".q.heads", b.local(q), head_width());
  }

  // Pairs are complex numbers, and so are those that they are multiplied by: a table of both waves.
  TensorId turned_complex(const std::string& which, TensorId x) const {
    const TensorId wide = b.local(b.cast(name + which + ".float", x, DType::Float32));
    const TensorId y = turn_pairs(b, name + which + "_rope", wide, attention.cosine);
    return b.cast(name + which + ".round", y, b[x].dtype);
  }

  // The pairs of a head lie beside each other and are sorted first, into new memory. Megatron-LM's
  // code rounds its waves anew for q and for k, and joins what is turned with an empty rest.
  TensorId turned(const std::string& which, TensorId x) const {
    if (latent.turn == LatentTurn::Complex) return turned_complex(which, x);
    const OutputSpec sorted{"", b.shape(x), b[x].dtype};
    x = b.opaque(name + which + ".sorted", std::array{x}, std::span(&sorted, 1),
                 {.operation = "aten::clone", .gradients = 1, .computes = Formula::SortPairs});
    const std::string rope = name + which + "_rope";
    if (latent.turn != LatentTurn::Called) return b.rope(rope, x, attention.cosine, attention.sine);
    const TensorId cosine = b.cast(rope + ".cos", attention.cosine, b[x].dtype);
    const TensorId sine = b.cast(rope + ".sin", attention.sine, b[x].dtype);
    const TensorId y = b.rope(rope, x, cosine, sine);
    return b.concat(rope + ".join", std::array{y}, b.shape(y));
  }

  // The kernel turns q where it is; here the result has memory of its own, as what runs in place
  // may not run again, and a checkpoint runs it again.
  TensorId turned_queries(TensorId q) const {
    const OutputSpec turned{"", b.shape(q), b[q].dtype};
    return b.opaque(name + ".q_rope", std::array{q, attention.cosine, attention.sine},
                    std::span(&turned, 1),
                    {.operation = std::string(turned_queries_operation),
                     .gradients = 0b1,
                     .handed_on = 0b1,
                     .saved = input_bit(1) | input_bit(2)});
  }

  struct KeysAndValues {
    TensorId keys, values;
  };

  KeysAndValues split_keys(TensorId kv, TensorId shared) const {
    const std::array outputs = {
        OutputSpec{"", b.shape(kv).with_back(head_width()), b[kv].dtype},
        OutputSpec{"v", b.shape(kv).with_back(latent.value_width), b[kv].dtype}};
    const TensorId keys = b.opaque(
        name + ".k_rope", std::array{kv, shared, attention.cosine, attention.sine}, outputs,
        {.operation = std::string(split_keys_operation),
         .gradients = 0b11,
         .saved = input_bit(2) | input_bit(3)});
    return {keys, b.trace().outputs(b.trace().ops.back())[1]};
  }

  // Angles of all tokens, and their waves: each layer has its own (YarnRotaryEmbedding of
  // core/models/common/embeddings). Kernels make theirs anew for the tokens at hand.
  void keep_tables(std::int64_t tokens) const {
    const bool is_fused = latent.turn == LatentTurn::Fused;
    if (!is_fused && latent.turn != LatentTurn::Called) return;
    const Shape waves = {is_fused ? tokens : usual_positions, latent.rotary_width};
    b.buffer(name + ".rope.angles", {tokens, latent.rotary_width}, DType::Float32);
    b.buffer(name + ".rope.cos_cached", waves, b.base_dtype());
    b.buffer(name + ".rope.sin_cached", waves, b.base_dtype());
  }

  // Kernels read heads as they are.
  std::vector<TensorId> parts_of(const std::string& which, TensorId x, std::int64_t width,
                                 std::string_view rest) const {
    if (latent.turn == LatentTurn::Fused) return {};
    const Shape all = b.shape(x);
    return b.split(name + which + ".parts", x,
                   {all.with_back(latent.plain_width), all.with_back(width)}, {"plain", rest});
  }

  Heads joined(const std::vector<TensorId>& q, const std::vector<TensorId>& kv,
               TensorId shared) const {
    const Shape all = b.shape(q[0]).with_back(head_width());
    const TensorId q_turned = b.local(turned(".q", q[1])), k_turned = b.local(turned(".k", shared));
    const TensorId queries = b.local(b.concat(name + ".q.join", std::array{q[0], q_turned}, all));
    const TensorId keys = b.local(b.concat(name + ".k.join", std::array{kv[0], k_turned}, all));
    return {queries, keys, kv[1]};
  }

  Heads fused(TensorId q, TensorId kv, TensorId shared) const {
    const auto [keys, values] = split_keys(kv, shared);
    return {b.local(turned_queries(q)), b.local(keys), values};
  }

  TensorId operator()(TensorId x) const {
    const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1], width = b.shape(x)[2];
    const std::int64_t turns = latent.rotary_width;
    keep_tables(tokens);
    const TensorId q = queries(x);
    const auto q_parts = parts_of(".q", q, turns, "turns");
    const TensorId narrow =
        b.linear(name + ".kv_a", x, latent.key_rank + turns, attention.qkv_bias);
    const auto of_all =
        b.split(name + ".kv_a.parts", b.local(narrow),
                {{batch, tokens, latent.key_rank}, {batch, tokens, turns}}, {"narrow", "turns"});
    TensorId kv = normed(".kv_a_norm", of_all[0]);
    const std::int64_t of_head = latent.plain_width + latent.value_width;
    kv = b.linear(name + ".kv_b", kv, attention.heads * of_head, false);
    kv = by_head(".kv.heads", b.local(kv), of_head);
    const auto kv_parts = parts_of(".kv", kv, latent.value_width, "v");
    const TensorId shared = b.view(name + ".k.turns", of_all[1], {batch, 1, tokens, turns});
    const Heads heads = q_parts.empty() ? fused(q, kv, shared) : joined(q_parts, kv_parts, shared);
    const TensorId mixed = attention_core(b, name, heads.q, heads.k, heads.v, attention);
    return b.linear(name + ".o", mixed, width, attention.out_bias);
  }
};

}  // namespace

TensorId latent_attention(TraceBuilder& b, const std::string& name, TensorId x,
                          const LatentConfig& latent, const AttentionConfig& attention) {
  b.begin_function();
  const TensorId y = Latent{b, name, latent, attention}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
