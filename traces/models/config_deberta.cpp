// deberta-v2: DeBERTa-v2 and -v3, which has fields of v2 only.
#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

// "p2c|c2p", or a list of the two.
bool scores(Fields& root, std::string_view kind) {
  const auto value = root.find("pos_att_type");
  if (!value) return false;
  if (value->kind() == JsonKind::Text) return value->text().find(kind) != std::string_view::npos;
  for (const JsonView item : value->items())
    if (item.text() == kind) return true;
  return false;
}

// Half the rows of the table of relative places: buckets, or as many as there are distances.
std::int64_t span(Fields& root, std::int64_t positions) {
  if (!root.boolean_or("relative_attention", false)) return 0;
  const auto positive = [&](std::string_view key) -> std::int64_t {
    return root.integer_or(key, -1, -1, most_positions);
  };
  const std::int64_t buckets = positive("position_buckets");
  const std::int64_t distances = positive("max_relative_positions");
  if (buckets > 0) return buckets;
  return distances > 0 ? distances : positions;
}

}  // namespace

ModelConfig read_deberta(Fields& root) {
  const DebertaConfig usual;
  DebertaConfig config{
      .width = count(root, "hidden_size", usual.width, widest),
      .depth = count(root, "num_hidden_layers", usual.depth, most_blocks),
      .heads = count(root, "num_attention_heads", usual.heads, most_heads),
      .mlp = count(root, "intermediate_size", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions = count(root, "max_position_embeddings", usual.positions, most_positions),
      .token_types = root.integer_or("type_vocab_size", 0, 0, most_words),
      .shares_projections = root.boolean_or("share_att_key", false),
      .norms_places = root.text_or("norm_rel_ebd", "none") == "layer_norm",
      .absolute_places = root.boolean_or("position_biased_input", true),
      .epsilon = epsilon(root, "layer_norm_eps", usual.epsilon),
      .dropout = probability(root, "hidden_dropout_prob", usual.dropout),
      .attention_dropout =
          probability(root, "attention_probs_dropout_prob", usual.attention_dropout),
      .tied_head = root.boolean_or("tie_word_embeddings", true),
      .labels = classes(root),
      .classifier_dropout = optional_probability(root, {"cls_dropout"}),
      .pooler_dropout = probability(root, "pooler_dropout", 0)};
  config.span = span(root, config.positions);
  config.content_to_place = config.span > 0 && scores(root, "c2p");
  config.place_to_content = config.span > 0 && scores(root, "p2c");
  const std::int64_t words = count(root, "embedding_size", config.width, widest);
  if (words != config.width) config.embedding_width = words;
  config.activation = activation_form(root, "hidden_act", config.activation);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  config.pooler_activation = activation_form(root, "pooler_hidden_act", config.pooler_activation);
  if (count(root, "pooler_hidden_size", config.width, widest) != config.width)
    fail_at(root, "pooler_hidden_size", "a pooler of another width; use that of hidden_size");
  refuse(root, "conv_kernel_size", "a convolution beside the first block; remove it");
  if (!root.boolean_or("legacy", true))
    fail_at(root, "legacy", "the newer head of masked words is not modelled; use true");
  return config;
}

}  // namespace tidemark::config
