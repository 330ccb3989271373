// Op by op, as modeling_deepseek_v2.py and modeling_deepseek_v3.py of transformers 4.57 write it.
#include "traces/models/latent_attention.h"

#include <array>

namespace tidemark {
namespace {

constexpr double own_epsilon = 1e-6;  // DeepseekV3RMSNorm's default

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

  TensorId queries(TensorId x) const {
    const std::int64_t width = attention.heads * head_width();
    if (latent.query_rank > 0) {
      x = b.linear(name + ".q_a", x, latent.query_rank, attention.qkv_bias);
      x = b.rms_norm(name + ".q_a_norm", x, own_epsilon);
    }
    const TensorId q = b.linear(name + (latent.query_rank > 0 ? ".q_b" : ".q"), x, width, false);
    return by_head(".q.heads", b.local(q), head_width());
  }

  // Pairs are complex numbers, and so are those that they are multiplied by: a table of both waves.
  TensorId turned_complex(const std::string& which, TensorId x) const {
    const TensorId wide = b.local(b.cast(name + which + ".float", x, DType::Float32));
    const OutputSpec product{"", b.shape(x), DType::Float32};
    const TensorId y =
        b.opaque(name + which + "_rope", std::array{wide, attention.cosine}, std::span(&product, 1),
                 {.operation = "aten::mul",
                  .gradients = 1,
                  .saved = input_bit(1),
                  .computes = Formula::TurnPairs});
    return b.cast(name + which + ".round", y, b[x].dtype);
  }

  // The pairs of a head lie beside each other and are sorted first, into new memory.
  TensorId turned(const std::string& which, TensorId x) const {
    if (latent.turns_complex) return turned_complex(which, x);
    const OutputSpec sorted{"", b.shape(x), b[x].dtype};
    x = b.opaque(name + which + ".sorted", std::array{x}, std::span(&sorted, 1),
                 {.operation = "aten::clone", .gradients = 1, .computes = Formula::SortPairs});
    return b.rope(name + which + "_rope", x, attention.cosine, attention.sine);
  }

  TensorId operator()(TensorId x) const {
    const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1], width = b.shape(x)[2];
    const std::int64_t plain = latent.plain_width, turns = latent.rotary_width;
    const Shape all = {batch, attention.heads, tokens, head_width()};
    const Shape still = all.with_back(plain), rotating = all.with_back(turns);
    const auto q = b.split(name + ".q.parts", queries(x), {still, rotating}, {"plain", "turns"});
    const TensorId narrow =
        b.linear(name + ".kv_a", x, latent.key_rank + turns, attention.qkv_bias);
    const auto of_all =
        b.split(name + ".kv_a.parts", b.local(narrow),
                {{batch, tokens, latent.key_rank}, {batch, tokens, turns}}, {"narrow", "turns"});
    TensorId kv = b.rms_norm(name + ".kv_a_norm", of_all[0], own_epsilon);
    kv = b.linear(name + ".kv_b", kv, attention.heads * (plain + latent.value_width), false);
    kv = by_head(".kv.heads", b.local(kv), plain + latent.value_width);
    const auto k_v =
        b.split(name + ".kv.parts", kv, {still, all.with_back(latent.value_width)}, {"plain", "v"});
    const TensorId shared = b.view(name + ".k.turns", of_all[1], {batch, 1, tokens, turns});
    const TensorId q_turned = b.local(turned(".q", q[1])), k_turned = b.local(turned(".k", shared));
    const TensorId queries = b.local(b.concat(name + ".q.join", std::array{q[0], q_turned}, all));
    const TensorId keys = b.local(b.concat(name + ".k.join", std::array{k_v[0], k_turned}, all));
    const TensorId mixed = attention_core(b, name, queries, keys, k_v[1], attention);
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
