// Copies of heads, and masks of padding, as ops.
#include "traces/models/engine_attention.h"

#include "traces/padding_ops.h"

namespace tidemark {

Heads in_engine_layout(TraceBuilder& b, const std::string& name, const Heads& heads) {
  if (!b.framework().transformer_engine) return heads;
  const auto storage = [&](TensorId x) { return b[x].storage; };
  const bool is_one_piece = storage(heads.q) == storage(heads.k) &&
                            storage(heads.k) == storage(heads.v) &&
                            b.shape(heads.q) == b.shape(heads.k);
  const bool are_two_pieces = storage(heads.q) != storage(heads.k) &&
                              storage(heads.k) == storage(heads.v) &&
                              b.shape(heads.k) == b.shape(heads.v);
  if (is_one_piece || are_two_pieces) return heads;
  const auto own = [&](TensorId x, const char* which) {
    const bool is_part = size(b[x]) < size(b[storage(x)]);
    return is_part ? b.copy(name + which + std::string(".dense"), x, b.shape(x)) : x;
  };
  return {own(heads.q, ".q"), own(heads.k, ".k"), own(heads.v, ".v")};
}

bool puts_samples_first(const TraceBuilder& b) {
  constexpr std::int64_t hopper = 90, blackwell = 100;
  const Framework& framework = b.framework();
  if (!framework.transformer_engine || sequences_of(b.step()) == 1) return false;
  const std::int64_t capability = b.step().capability.value_or(80);
  return b.step().attention == Attention::Flash || capability < hopper ||
         (capability >= blackwell && framework.deterministic_workspace);
}

Heads with_samples_first(TraceBuilder& b, const std::string& name, const Heads& heads) {
  const auto copied = [&](TensorId x, const char* which) {
    return b.copy(name + which + std::string(".by_sample"), x, b.shape(x));
  };
  return {copied(heads.q, ".q"), copied(heads.k, ".k"), copied(heads.v, ".v")};
}

TensorId without_padding(TraceBuilder& b, const std::string& name, TensorId weights,
                         TensorId mask) {
  const Shape s = b.shape(weights);
  const OutputSpec pairs{"", {s[0], 1, s[2], s[3]}, DType::Bool};
  const TensorId hidden = b.opaque(name + ".padding", std::array{mask}, std::span(&pairs, 1),
                                   {.operation = std::string(padding_of_pairs_operation)});
  const OutputSpec cleared{"", s, b[weights].dtype};
  return b.opaque(
      name + ".cleared", std::array{weights, hidden}, std::span(&cleared, 1),
      {.operation = std::string(fill_operation), .gradients = 1, .saved = input_bit(1)});
}

}  // namespace tidemark
