// bert, roberta, gpt2, llama, mistral, qwen2 and qwen3: the fields and defaults of Hugging Face's
// configuration_*.py.
#include <fmt/format.h>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

// "gelu_pytorch_tanh" is one fused kernel with the memory of the exact form; "gelu_new" is written
// out in elementwise kernels.
bool is_composed_gelu(Fields& root, std::string_view key,
                      std::initializer_list<std::string_view> known) {
  return activation(root, key, known) == "gelu_new";
}

// The first of `keys` that is there.
std::optional<double> optional_probability(Fields& root,
                                           std::initializer_list<std::string_view> keys) {
  std::optional<double> found;
  for (const std::string_view key : keys)
    if (const auto value = root.find(key); value && !found) found = value->number(0, 1);
  return found;
}

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
  config.gelu_tanh =
      is_composed_gelu(root, "hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"});
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  refuse(root, "is_decoder", "a decoder's causal mask; remove it");
  refuse(root, "add_cross_attention", "a second attention per block; remove it");
  if (root.text_or("position_embedding_type", "absolute") != "absolute")
    fail_at(root, "position_embedding_type",
            "relative positions are not modelled for this family; use 'absolute'");
  return config;
}

/// Where the members of the LLaMA family differ beside their defaults.
struct Kin {
  LlamaConfig usual = {};
  bool key_heads_default_to_heads = true;
  bool has_bias_fields = false;     ///< attention_bias and mlp_bias
  bool head_width_is_free = false;  ///< its default does not follow from the width
};

// A head's width: stated, or what the width leaves to each head.
std::int64_t head_width(Fields& root, const LlamaConfig& config, const Kin& kin) {
  if (root.find("head_dim") || kin.head_width_is_free)
    return count(root, "head_dim", kin.usual.head_width, widest);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  return config.width / config.heads;
}

LlamaConfig llama(Fields& root, const Kin& kin) {
  const LlamaConfig& usual = kin.usual;
  LlamaConfig config{
      .width = count(root, "hidden_size", usual.width, widest),
      .depth = count(root, "num_hidden_layers", usual.depth, most_blocks),
      .heads = count(root, "num_attention_heads", usual.heads, most_heads),
      .mlp = count(root, "intermediate_size", usual.mlp, widest),
      .vocabulary = count(root, "vocab_size", usual.vocabulary, most_words),
      .positions = count(root, "max_position_embeddings", usual.positions, most_positions),
      .epsilon = epsilon(root, "rms_norm_eps", usual.epsilon),
      .attention_dropout = probability(root, "attention_dropout", 0),
      .qkv_bias = usual.qkv_bias,
      .head_norm = usual.head_norm,
      .tied_head = root.boolean_or("tie_word_embeddings", false),
      .labels = classes(root),
      .classifier_dropout = optional_probability(root, {"classifier_dropout", "hidden_dropout"})};
  config.rotary = rotary(root, config.positions);
  // In these files null means "as many as heads", while a missing field means the class's default.
  const auto key_heads = root.member("num_key_value_heads");
  const bool as_heads =
      key_heads ? key_heads->kind() == JsonKind::Null : kin.key_heads_default_to_heads;
  config.key_heads =
      count(root, "num_key_value_heads", as_heads ? config.heads : usual.key_heads, most_heads);
  config.head_width = head_width(root, config, kin);
  if (kin.has_bias_fields)
    config.qkv_bias = config.out_bias = root.boolean_or("attention_bias", false);
  activation(root, "hidden_act", {"silu", "swish"});
  require_divides(root, "num_key_value_heads", config.key_heads, "num_attention_heads",
                  config.heads);
  if (config.head_width % 2 != 0)
    fail_at(root, "head_dim",
            fmt::format("rotary positions need an even head width, not {}", config.head_width));
  return config;
}

// Qwen's window is off unless it is switched on.
std::int64_t switched_window(Fields& root) {
  const std::int64_t window = count(root, "sliding_window", 4096, most_positions);
  return root.boolean_or("use_sliding_window", false) ? window : 0;
}

}  // namespace

ModelConfig read_bert(Fields& root) { return bert(root, {}); }

ModelConfig read_roberta(Fields& root) {
  BertConfig config = bert(root, {.vocabulary = 50265});
  config.first_position = root.integer_or("pad_token_id", 1, 0, most_positions) + 1;
  if (config.first_position >= config.positions)
    fail_at(root, "max_position_embeddings",
            fmt::format("{} positions, of which the first {} are never used, leave none; use more",
                        config.positions, config.first_position));
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
  config.gelu_tanh =
      is_composed_gelu(root, "activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh"});
  require_divides(root, "n_head", config.heads, "n_embd", config.width);
  refuse(root, "add_cross_attention", "a second attention per block; remove it");
  refuse(root, "reorder_and_upcast_attn", "scores computed in fp32; remove it");
  if (!root.boolean_or("scale_attn_weights", true))
    fail_at(root, "scale_attn_weights", "unscaled scores are not modelled; use true");
  return config;
}

ModelConfig read_llama(Fields& root) {
  LlamaConfig config = llama(root, {.has_bias_fields = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  return config;
}

ModelConfig read_mistral(Fields& root) {
  LlamaConfig config = llama(root, {.usual = {.mlp = 14336, .key_heads = 8, .positions = 131072},
                                    .key_heads_default_to_heads = false});
  const auto window = root.member("sliding_window");
  const bool none = window && window->kind() == JsonKind::Null;
  config.sliding_window = none ? 0 : count(root, "sliding_window", 4096, most_positions);
  return config;
}

// q, k and v have a bias that no field of the file mentions.
ModelConfig read_qwen2(Fields& root) {
  LlamaConfig config = llama(root, {.usual = {.mlp = 22016,
                                              .key_heads = 32,
                                              .vocabulary = 151936,
                                              .positions = 32768,
                                              .qkv_bias = true},
                                    .key_heads_default_to_heads = false});
  config.sliding_window = switched_window(root);
  return config;
}

ModelConfig read_qwen3(Fields& root) {
  LlamaConfig config = llama(root, {.usual = {.mlp = 22016,
                                              .key_heads = 32,
                                              .head_width = 128,
                                              .vocabulary = 151936,
                                              .positions = 32768,
                                              .head_norm = true},
                                    .key_heads_default_to_heads = false,
                                    .has_bias_fields = true,
                                    .head_width_is_free = true});
  config.sliding_window = switched_window(root);
  return config;
}

}  // namespace tidemark::config
