// t5: the first version has a plain MLP with ReLU, the later ones and FLAN-T5 a gated one.
#include <fmt/format.h>

#include "base/quoted.h"
#include "traces/models/config_fields.h"

namespace tidemark::config {

namespace {

// "gated-gelu" is T5 1.1's, whose GELU is gelu_new; any other name is that of ACT2FN.
void read_feed_forward(Fields& root, T5Config& config) {
  constexpr std::string_view key = "feed_forward_proj", gated = "gated-";
  const std::string_view stated = root.text_or(key, "relu");
  std::string_view name = stated;
  if (name.starts_with(gated)) {
    config.mlp_form = MlpForm::Gated;
    name.remove_prefix(gated.size());
    if (name == "gelu") name = "gelu_new";
  }
  const auto form = find_activation(name);
  if (!form)
    fail_at(root, key,
            fmt::format(
                "activation {} is not modelled (known, each with \"gated-\" before it, too: {})",
                quoted(stated), known_activations()));
  config.activation = *form;
}

}  // namespace

ModelConfig read_t5(Fields& root) {
  const T5Config usual;
  T5Config config{
      .width = count(root, "d_model", usual.width, widest),
      .depth = count(root, "num_layers", usual.depth, most_blocks),
      .heads = count(root, "num_heads", usual.heads, most_heads),
      .head_width = count(root, "d_kv", usual.head_width, widest),
      .mlp = count(root, "d_ff", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .buckets = count(root, "relative_attention_num_buckets", usual.buckets, widest),
      .farthest = count(root, "relative_attention_max_distance", usual.farthest, widest),
      .epsilon = epsilon(root, "layer_norm_epsilon", usual.epsilon),
      .dropout = probability(root, "dropout_rate", usual.dropout),
      .tied_head = root.boolean_or("tie_word_embeddings", true)};
  if (config.buckets < 4 || config.farthest <= config.buckets / 2)
    fail_at(root, "relative_attention_num_buckets",
            fmt::format("{} buckets for distances up to {}; need 4 or more, and more than half as "
                        "many distances",
                        config.buckets, config.farthest));
  config.decoder_depth = count(root, "num_decoder_layers", config.depth, most_blocks);
  read_feed_forward(root, config);
  return config;
}

}  // namespace tidemark::config
