// bart and whisper: encoder-decoders with learned positions, whose fields have the same names.
#include <cmath>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

BartConfig encoder_decoder(Fields& root, const BartConfig& usual) {
  BartConfig config = usual;
  config.width = count(root, "d_model", usual.width, widest);
  config.vocabulary = count(root, "vocab_size", usual.vocabulary, most_words);
  config.depth = count(root, "encoder_layers", usual.depth, most_blocks);
  config.heads = count(root, "encoder_attention_heads", usual.heads, most_heads);
  config.mlp = count(root, "encoder_ffn_dim", usual.mlp, widest);
  config.decoder_depth = count(root, "decoder_layers", usual.decoder_depth, most_blocks);
  config.decoder_heads = count(root, "decoder_attention_heads", usual.decoder_heads, most_heads);
  config.decoder_mlp = count(root, "decoder_ffn_dim", usual.decoder_mlp, widest);
  config.dropout = probability(root, "dropout", usual.dropout);
  config.activation_dropout = probability(root, "activation_dropout", 0);
  config.attention_dropout = probability(root, "attention_dropout", 0);
  config.activation = activation_form(root, "activation_function", usual.activation);
  if (root.boolean_or("scale_embedding", false))
    config.embedding_factor = std::sqrt(static_cast<double>(config.width));
  config.tied_head = root.boolean_or("tie_word_embeddings", true);
  require_divides(root, "encoder_attention_heads", config.heads, "d_model", config.width);
  require_divides(root, "decoder_attention_heads", config.decoder_heads, "d_model", config.width);
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"})
    if (root.number_or(key, 0, 0, 1) != 0)
      fail_at(root, key, "whole layers left out at random are not modelled; use 0");
  return config;
}

}  // namespace

ModelConfig read_bart(Fields& root) {
  BartConfig config = encoder_decoder(root, {});
  config.positions = count(root, "max_position_embeddings", config.positions, most_positions);
  config.decoder_positions = config.positions;
  return config;
}

ModelConfig read_whisper(Fields& root) {
  const BartConfig usual{.family = "whisper",
                         .width = 384,
                         .vocabulary = 51865,
                         .depth = 4,
                         .heads = 6,
                         .mlp = 1536,
                         .positions = 1500,
                         .decoder_depth = 4,
                         .decoder_heads = 6,
                         .decoder_mlp = 1536,
                         .decoder_positions = 448,
                         .first_position = 0,
                         .mel_bins = 80,
                         .dropout = 0};
  BartConfig config = encoder_decoder(root, usual);
  config.mel_bins = count(root, "num_mel_bins", usual.mel_bins, widest);
  config.positions = count(root, "max_source_positions", usual.positions, most_positions);
  config.decoder_positions =
      count(root, "max_target_positions", usual.decoder_positions, most_positions);
  refuse(root, "apply_spec_augment", "masked sound; remove it");
  return config;
}

}  // namespace tidemark::config
