// Op by op, as modeling_deberta_v2.py of transformers 4.57 writes it, eager, which has no other
// attention. What looks up and masks are opaque ops.
#include "traces/models/disentangled_attention.h"

#include <array>
#include <cmath>

namespace tidemark {
namespace {

struct Disentangled {
  TraceBuilder& b;
  const DebertaConfig& config;
  const DebertaShared& shared;
  const std::string& name;

  std::int64_t head_width() const { return config.width / config.heads; }

  struct Projection {
    std::string leaf;
    Adapter adapter;
  };

  Projection projection(const std::string& which) const {
    const std::string full = name + "." + which;
    const TensorId weight = b.parameter(full + ".weight", {config.width, config.width});
    return {which, {.weight = weight, .bias = b.parameter(full + ".bias", {config.width})}};
  }

  // x [batch, tokens, width] → [batch, heads, tokens, d], in one piece.
  TensorId heads(const std::string& which, TensorId x, Projection& by) const {
    const std::string full = name + "." + which;
    TensorId y = b.linear_with(full, x, by.adapter.weight, by.adapter.bias);
    y = b.adapted(full, by.leaf, x, y, by.adapter);
    const Shape by_head = {b.shape(x)[0], config.heads, b.shape(x)[1], head_width()};
    return b.copy(full + ".heads", y, by_head, LayoutTransform::SplitHeads);
  }

  // The same of the table of places, once per sample.
  TensorId place_heads(const std::string& which, TensorId places, Projection& by) const {
    const TensorId one = heads(which, places, by);
    const Shape s = b.shape(one);
    return b.concat(name + "." + which + ".samples", std::array{one},
                    {b.step().batch, s[1], s[2], s[3]});
  }

  TensorId product(const std::string& which, TensorId x, TensorId y) const {
    const Shape s = b.shape(y);
    const TensorId transposed = b.view(name + "." + which + ".transposed", y,
                                       {s[0], s[1], s[3], s[2]}, LayoutTransform::ChannelsFirst);
    return b.matmul(name + "." + which, x, transposed);
  }

  // Scores with all places [batch, heads, tokens, 2·span] → with that of each token.
  TensorId looked_up(const std::string& which, TensorId scores) const {
    const Shape s = b.shape(scores);
    const std::string full = name + "." + which;
    const OutputSpec bounded{"", b.shape(shared.distances), DType::Int64};
    const TensorId rows = b.opaque(full + ".rows", std::array{shared.distances},
                                   std::span(&bounded, 1), {.operation = "aten::clamp"});
    const OutputSpec found{"", s.with_back(s[2]), b[scores].dtype};
    return b.opaque(
        full + ".found", std::array{scores, rows}, std::span(&found, 1),
        {.operation = "aten::gather", .gradients = 1, .saved = input_bit(0) | input_bit(1)});
  }

  TensorId masked(TensorId scores) const {
    const std::string full = name + ".mask";
    const OutputSpec truth{"", b.shape(shared.mask), DType::Bool};
    const TensorId seen = b.local(b.opaque(full + ".bool", std::array{shared.mask},
                                           std::span(&truth, 1), {.operation = "aten::_to_copy"}));
    const TensorId mask =
        b.opaque(full, std::array{seen}, std::span(&truth, 1), {.operation = "aten::bitwise_not"});
    const OutputSpec filled{"", b.shape(scores), b[scores].dtype};
    return b.opaque(full + "ed", std::array{scores, mask}, std::span(&filled, 1),
                    {.operation = "aten::masked_fill", .gradients = 1, .saved = input_bit(1)});
  }

  // disentangled_attention_bias(): both parts of the sum are named until it returns.
  TensorId of_places(TensorId places, TensorId q, TensorId k, const Projection& of_q,
                     const Projection& of_k, double factor) const {
    const std::string full = name + ".places";
    b.begin_function();
    const Shape rows = b.shape(places);
    places = b.view(full + ".row", b.select(full + ".used", places, rows), {1, rows[0], rows[1]});
    const bool shares = config.shares_projections;
    TensorId of_query = no_tensor, of_key = no_tensor;
    if (config.place_to_content) {
      Projection own = shares ? of_q : projection("place_q");
      of_query = place_heads("place_q", places, own);
    }
    if (config.content_to_place) {
      Projection own = shares ? of_k : projection("place_k");
      of_key = place_heads("place_k", places, own);
    }
    TensorId sum = no_tensor;
    if (config.content_to_place) {
      const TensorId y = b.local(looked_up("c2p", product("c2p", q, of_key)));
      sum = b.scale(full + ".c2p.scale", y, factor);
    }
    if (config.place_to_content) {
      TensorId y = b.local(looked_up("p2c", product("p2c", k, of_query)));
      y = b.view(full + ".p2c.transposed", y, b.shape(y), LayoutTransform::ChannelsFirst);
      y = b.scale(full + ".p2c.scale", y, factor);
      sum = sum == no_tensor ? y : b.add_in_place(full + ".add", sum, y);
    }
    b.end_function();
    return sum;
  }

  TensorId with_places(TensorId scores, TensorId q, TensorId k, const Projection& of_q,
                       const Projection& of_k, double factor) const {
    const std::string full = name + ".places";
    const TensorId places =
        b.local(b.dropout(full + ".drop", shared.places, b.dropout_probability(config.dropout)));
    return b.add(full, scores, b.local(of_places(places, q, k, of_q, of_k, factor)));
  }

  TensorId operator()(TensorId x) const {
    const std::string& full = name;
    b.begin_function();
    Projection of_q = projection("q"), of_k = projection("k");
    const TensorId q = b.local(heads("q", x, of_q)), k = b.local(heads("k", x, of_k));
    Projection of_v = projection("v");
    const TensorId v = b.local(heads("v", x, of_v));
    const bool has_places = config.content_to_place || config.place_to_content;
    const int kinds = 1 + int{config.content_to_place} + int{config.place_to_content};
    const double factor = 1 / std::sqrt(static_cast<double>(head_width()) * kinds);
    TensorId scores = product("scores", q, b.scale(full + ".k.scale", k, factor));
    if (has_places) scores = with_places(scores, q, k, of_q, of_k, factor);
    TensorId weights = b.softmax(full + ".softmax", b.local(masked(scores)));
    weights = b.local(b.dropout(full + ".softmax.drop", weights,
                                b.dropout_probability(config.attention_dropout)));
    const TensorId mixed = b.matmul(full + ".mix", weights, v);
    const TensorId y = b.copy(full + ".merge", mixed, b.shape(x), LayoutTransform::MergeHeads);
    b.end_function();
    return y;
  }
};

}  // namespace

TensorId disentangled_attention(TraceBuilder& b, const std::string& name, TensorId x,
                                const DebertaConfig& config, const DebertaShared& shared) {
  b.refuse_codes("DeBERTa's attention, which runs a linear twice");
  return Disentangled{b, config, shared, name}(x);
}

}  // namespace tidemark
