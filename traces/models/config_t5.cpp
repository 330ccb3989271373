// t5: the first version has a plain MLP with ReLU, the later ones and FLAN-T5 a gated one.
#include "traces/models/config_fields.h"

namespace tidemark::config {

ModelConfig read_t5(Fields& root) {
  const T5Config usual;
  T5Config config{.width = count(root, "d_model", usual.width, widest),
                  .depth = count(root, "num_layers", usual.depth, most_blocks),
                  .heads = count(root, "num_heads", usual.heads, most_heads),
                  .head_width = count(root, "d_kv", usual.head_width, widest),
                  .mlp = count(root, "d_ff", usual.mlp, widest),
                  .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
                  .buckets = count(root, "relative_attention_num_buckets", usual.buckets, widest),
                  .epsilon = epsilon(root, "layer_norm_epsilon", usual.epsilon),
                  .dropout = probability(root, "dropout_rate", usual.dropout),
                  .tied_head = root.boolean_or("tie_word_embeddings", true)};
  config.decoder_depth = count(root, "num_decoder_layers", config.depth, most_blocks);
  const std::string_view form = activation(root, "feed_forward_proj", {"relu", "gated-gelu"});
  if (form == "gated-gelu") {
    config.mlp_form = MlpForm::Gated;
    config.activation = ActivationForm::GeluComposed;
  }
  return config;
}

}  // namespace tidemark::config
