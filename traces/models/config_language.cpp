// bert, roberta and its kin, distilbert, electra and gpt2: the fields and defaults of Hugging
// Face's configuration_*.py.
#include <fmt/format.h>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

BertConfig bert(Fields& root, const BertConfig& usual) {
  BertConfig config{
      .width = count(root, "hidden_size", usual.width, widest),
      .depth = count(root, "num_hidden_layers", usual.depth, most_blocks),
      .heads = count(root, "num_attention_heads", usual.heads, most_heads),
      .mlp = count(root, "intermediate_size", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions = count(root, "max_position_embeddings", usual.positions, most_positions),
      .token_types = count(root, "type_vocab_size", usual.token_types, most_words),
      .epsilon = epsilon(root, "layer_norm_eps", usual.epsilon),
      .dropout = probability(root, "hidden_dropout_prob", usual.dropout),
      .attention_dropout =
          probability(root, "attention_probs_dropout_prob", usual.attention_dropout),
      .tied_head = root.boolean_or("tie_word_embeddings", true),
      .labels = classes(root),
      .classifier_dropout = optional_probability(root, {"classifier_dropout"})};
  config.activation = activation_form(root, "hidden_act", ActivationForm::Gelu);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  refuse(root, "is_decoder", "a decoder's causal mask; remove it");
  refuse(root, "add_cross_attention", "a second attention per block; remove it");
  if (root.text_or("position_embedding_type", "absolute") != "absolute")
    fail_at(root, "position_embedding_type",
            "relative positions are not modelled for this family; use 'absolute'");
  return config;
}

}  // namespace

ModelConfig read_bert(Fields& root) { return bert(root, {}); }

namespace {

BertConfig roberta(Fields& root, const BertConfig& usual) {
  BertConfig config = bert(root, usual);
  config.first_position = root.integer_or("pad_token_id", 1, 0, most_positions) + 1;
  if (config.first_position >= config.positions)
    fail_at(root, "max_position_embeddings",
            fmt::format("{} positions, of which the first {} are never used, leave none; use more",
                        config.positions, config.first_position));
  return config;
}

}  // namespace

ModelConfig read_roberta(Fields& root) { return roberta(root, {.vocabulary = 50265}); }

// XLM-R and CamemBERT, whose classes' default vocabulary is BERT's.
ModelConfig read_roberta_kin(Fields& root) { return roberta(root, {}); }

ModelConfig read_electra(Fields& root) {
  BertConfig config = bert(root, {.width = 256, .heads = 4, .mlp = 1024});
  const std::int64_t words = count(root, "embedding_size", 128, widest);
  if (words != config.width) config.embedding_width = words;
  config.electra = true;
  config.has_pooler = false;
  return config;
}

ModelConfig read_distilbert(Fields& root) {
  const BertConfig usual{.depth = 6};
  BertConfig config{
      .width = count(root, "dim", usual.width, widest),
      .depth = count(root, "n_layers", usual.depth, most_blocks),
      .heads = count(root, "n_heads", usual.heads, most_heads),
      .mlp = count(root, "hidden_dim", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions = count(root, "max_position_embeddings", usual.positions, most_positions),
      .token_types = 0,
      .dropout = probability(root, "dropout", 0.1),
      .attention_dropout = probability(root, "attention_dropout", 0.1),
      .activation = activation_form(root, "activation", ActivationForm::Gelu),
      .scales_query = true,
      .drops_attention_output = false,
      .distilled = true,
      .has_pooler = false,
      .tied_head = root.boolean_or("tie_word_embeddings", true),
      .labels = classes(root),
      .classifier_dropout = probability(root, "seq_classif_dropout", 0.2),
      .answer_dropout = probability(root, "qa_dropout", 0.1)};
  require_divides(root, "n_heads", config.heads, "dim", config.width);
  return config;
}

// The class also takes the common names of its fields (its attribute_map).
ModelConfig read_gpt2(Fields& root) {
  const Gpt2Config usual;
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback,
                          std::int64_t most) {
    return count(root, own, count(root, common, fallback, most), most);
  };
  Gpt2Config config{
      .width = either("n_embd", "hidden_size", usual.width, widest),
      .depth = either("n_layer", "num_hidden_layers", usual.depth, most_blocks),
      .heads = either("n_head", "num_attention_heads", usual.heads, most_heads),
      .mlp = 0,
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions =
          either("n_positions", "max_position_embeddings", usual.positions, most_positions),
      .epsilon = epsilon(root, "layer_norm_epsilon", usual.epsilon),
      .embedding_dropout = probability(root, "embd_pdrop", 0.1),
      .residual_dropout = probability(root, "resid_pdrop", 0.1),
      .attention_dropout = probability(root, "attn_pdrop", 0.1),
      .tied_head = root.boolean_or("tie_word_embeddings", true),
      .labels = classes(root),
      .classifier_dropout = optional_probability(root, {"classifier_dropout", "hidden_dropout"})};
  config.mlp = count(root, "n_inner", 4 * config.width, 4 * widest);
  config.activation = activation_form(root, "activation_function", usual.activation);
  require_divides(root, "n_head", config.heads, "n_embd", config.width);
  refuse(root, "add_cross_attention", "a second attention per block; remove it");
  refuse(root, "reorder_and_upcast_attn", "scores computed in fp32; remove it");
  if (!root.boolean_or("scale_attn_weights", true))
    fail_at(root, "scale_attn_weights", "unscaled scores are not modelled; use true");
  return config;
}

}  // namespace tidemark::config
