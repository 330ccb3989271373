// Rotary positions op by op, as apply_rotary_pos_emb() of transformers' modeling files writes them.
#include "traces/models/head_turns.h"

#include <array>

#include "traces/models/liger.h"
#include "traces/models/titan.h"

namespace tidemark {
namespace {

// With fp32 tables the products are fp32, and rounded once.
TensorId turn(TraceBuilder& b, const std::string& name, TensorId x, const AttentionConfig& config) {
  const TensorId read =
      config.widens_rotated ? b.local(b.cast(name + ".float", x, DType::Float32)) : x;
  const TensorId y =
      b.rope(name, read, config.cosine, config.sine, config.turn != HeadTurn::Halves);
  return config.rounds_rotated ? b.cast(name + ".round", y, b[x].dtype) : y;
}

// Of the model's table the code reads one half, which is all that is there here.
TensorId spread(TraceBuilder& b, const std::string& name, TensorId table) {
  const std::int64_t tokens = b.shape(table)[0], pairs = b.shape(table)[1];
  const TensorId columns = b.view(name + ".columns", table, {tokens, pairs, 1, 1});
  const TensorId both = b.repeat_heads(name + ".repeat", columns, {tokens, 2 * pairs, 1, 1});
  return b.local(b.view(name, both, {tokens, 2 * pairs}));
}

// The part that turns, joined with the rest to one dense piece; or all of it.
TensorId rotate(TraceBuilder& b, const std::string& name, TensorId x,
                const AttentionConfig& config) {
  const Shape s = b.shape(x);
  const std::int64_t width = config.rotary_width;
  if (width == 0 || width == s.back()) {
    const TensorId turned = turn(b, name, x, config);
    // Inductor's decomposition of a concatenation leaves out what is empty.
    return config.joins_nothing && !is_compiled(b.framework())
               ? b.concat(name + ".join", std::array{turned}, s)
               : turned;
  }
  TensorId turned = b.select(name + ".part", x, s.with_back(width));
  turned = turn(b, name, turned, config);
  const TensorId rest =
      b.select(name + ".rest", x, s.with_back(s.back() - width), LayoutTransform::Slice, width);
  return b.concat(name + ".join", std::array{turned, rest}, s);
}

// apply_rotary_pos_emb(), whose variables last until both have turned.
Heads rotated(TraceBuilder& b, const std::string& name, Heads heads, AttentionConfig config) {
  b.begin_function();
  if (config.turn == HeadTurn::SpreadNeighbours) {
    config.cosine = spread(b, name + ".cos", config.cosine);
    config.sine = spread(b, name + ".sin", config.sine);
  }
  heads.q = rotate(b, name + ".q_rope", heads.q, config);
  heads.k = rotate(b, name + ".k_rope", heads.k, config);
  b.end_function();
  return heads;
}

}  // namespace

Heads turned_heads(TraceBuilder& b, const std::string& name, const Heads& heads,
                   const AttentionConfig& config) {
  if (config.cosine == no_tensor) return heads;
  if (b.step().liger) {
    const auto [q, k] =
        liger_rope(b, name + ".rope", {heads.q, heads.k}, config.cosine, config.sine);
    return {q, k, heads.v};
  }
  if (config.turns_pairs) return titan_heads(b, name, heads, config.cosine);
  return rotated(b, name, heads, config);
}

}  // namespace tidemark
