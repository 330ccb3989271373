// modernbert: the fields and defaults of configuration_modernbert.py.
#include "traces/models/config_fields.h"

namespace tidemark::config {

ModelConfig read_modernbert(Fields& root) {
  const ModernBertConfig usual;
  ModernBertConfig config{
      .width = count(root, "hidden_size", usual.width, widest),
      .depth = count(root, "num_hidden_layers", usual.depth, most_blocks),
      .heads = count(root, "num_attention_heads", usual.heads, most_heads),
      .mlp = count(root, "intermediate_size", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions = count(root, "max_position_embeddings", usual.positions, most_positions),
      .window = count(root, "local_attention", usual.window, most_positions),
      .global_every = count(root, "global_attn_every_n_layers", usual.global_every, most_blocks),
      .epsilon = epsilon(root, "norm_eps", usual.epsilon),
      .norm_bias = root.boolean_or("norm_bias", false),
      .attention_bias = root.boolean_or("attention_bias", false),
      .mlp_bias = root.boolean_or("mlp_bias", false),
      .classifier_bias = root.boolean_or("classifier_bias", false),
      .decoder_bias = root.boolean_or("decoder_bias", true),
      .embedding_dropout = probability(root, "embedding_dropout", 0),
      .attention_dropout = probability(root, "attention_dropout", 0),
      .mlp_dropout = probability(root, "mlp_dropout", 0),
      .tied_head = root.boolean_or("tie_word_embeddings", true),
      .labels = classes(root),
      .classifier_dropout = probability(root, "classifier_dropout", 0)};
  config.pools_mean = one_of(root, "classifier_pooling", {"cls", "mean"}) == "mean";
  constexpr double largest_theta = 1e12;
  config.rotary.theta = root.number_or("global_rope_theta", usual.rotary.theta, 1, largest_theta);
  config.local_rotary.theta =
      root.number_or("local_rope_theta", usual.local_rotary.theta, 1, largest_theta);
  config.activation = activation_form(root, "hidden_activation", config.activation);
  config.head_activation = activation_form(root, "classifier_activation", config.head_activation);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  refuse(root, "sparse_prediction", "a loss of the masked words alone; remove it");
  return config;
}

}  // namespace tidemark::config
