// GPTModel and BertModel of Megatron-LM's core, by the names of its command line
// (core/models/{gpt/gpt,bert/bert}_model.py, core/transformer/transformer_config.py): one product
// for q, k and v, dropout of 0.1; GPTs with biases unless they are left out, learned positions or
// rotation, LayerNorm or RMSNorm, GELU or SwiGLU.
#include <fmt/format.h>

#include "traces/models/config_decoder.h"

namespace tidemark::config {
namespace {

NormForm norm_of(Fields& root) {
  const std::string_view name = root.text_or("normalization", "LayerNorm");
  if (name == "RMSNorm") return NormForm::Rms;
  if (name != "LayerNorm")
    fail_at(root, "normalization", "not a norm that GPTs have; use LayerNorm or RMSNorm");
  return NormForm::Layer;
}

bool has_learned_positions(Fields& root) {
  const std::string_view name = root.text_or("position_embedding_type", "learned_absolute");
  if (name != "learned_absolute" && name != "rope")
    fail_at(root, "position_embedding_type", "not simulated; use learned_absolute or rope");
  return name != "rope";
}

// The usual width of SwiGLU is two thirds of four, in whole 64s.
std::int64_t usual_mlp(std::int64_t width, bool is_gated) {
  return is_gated ? width * 8 / 3 / 64 * 64 : 4 * width;
}

ExpertsConfig experts_of(Fields& root, const DecoderConfig& config) {
  ExpertsConfig experts{.count = count(root, "num_experts", 0, most_experts)};
  if (experts.count == 0) return experts;
  experts.per_token = count(root, "moe_router_topk", 2, most_experts);
  if (experts.per_token > experts.count)
    fail_at(root, "moe_router_topk",
            fmt::format("{} of {} experts; use {} or less", experts.per_token, experts.count,
                        experts.count));
  experts.width = count(root, "moe_ffn_hidden_size", config.mlp, widest);
  experts.shared_width = count(root, "moe_shared_expert_intermediate_size", 0, widest);
  experts.is_grouped = root.boolean_or("moe_grouped_gemm", true);
  experts.gates_shared = root.boolean_or("moe_shared_expert_gate", false);
  if (config.mlp_bias)
    fail_at(root, "add_bias_linear", "biases of experts are not simulated; set it to false");
  return experts;
}

}  // namespace

ModelConfig read_megatron_gpt(Fields& root) {
  DecoderConfig config{.family = "megatron-gpt"};
  config.width = count(root, "hidden_size", 768, widest);
  config.depth = count(root, "num_layers", 12, most_blocks);
  config.heads = count(root, "num_attention_heads", 12, most_heads);
  config.key_heads = count(root, "num_query_groups", config.heads, most_heads);
  require_divides(root, "num_query_groups", config.key_heads, "num_attention_heads", config.heads);
  if (!root.find("kv_channels"))
    require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  config.head_width = count(root, "kv_channels", config.width / config.heads, widest);
  const bool is_gated = root.boolean_or("swiglu", false);
  config.mlp = count(root, "ffn_hidden_size", usual_mlp(config.width, is_gated), widest);
  config.mlp_form = is_gated ? MlpForm::GatedPacked : MlpForm::Plain;
  config.activation = is_gated ? ActivationForm::Silu : ActivationForm::Gelu;
  config.vocabulary = count(root, "vocab_size", 50257, most_words);
  config.positions = count(root, "max_position_embeddings", 1024, most_positions);
  config.learned_positions = has_learned_positions(root);
  config.norm = norm_of(root);
  config.epsilon = epsilon(root, "norm_epsilon", 1e-5);
  config.qkv_bias = config.out_bias = config.mlp_bias = root.boolean_or("add_bias_linear", true);
  config.experts = experts_of(root, config);
  config.packed_qkv = config.plain_scores = true;
  config.unpacking = Unpacking::Slices;
  config.tied_head = !root.boolean_or("untie_embeddings_and_output_weights", false);
  config.attention_dropout = probability(root, "attention_dropout", 0.1);
  config.embedding_dropout = config.residual_dropout = probability(root, "hidden_dropout", 0.1);
  if (root.boolean_or("qk_layernorm", false))
    config.head_norm = config.norm == NormForm::Rms ? HeadNorm::PerHead : HeadNorm::LayerPerHead;
  return config;
}

// With its binary head a step is trained on the order of sentences, too, whose tokens have types
// (examples/bert/pretrain_bert.py).
ModelConfig read_megatron_bert(Fields& root) {
  BertConfig config{.megatron = true};
  config.width = count(root, "hidden_size", 768, widest);
  config.depth = count(root, "num_layers", 12, most_blocks);
  config.heads = count(root, "num_attention_heads", 12, most_heads);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  config.mlp = count(root, "ffn_hidden_size", 4 * config.width, widest);
  config.vocabulary = count(root, "vocab_size", 30522, most_words);
  config.positions = count(root, "max_position_embeddings", 512, most_positions);
  config.epsilon = epsilon(root, "norm_epsilon", 1e-5);
  config.attention_dropout = probability(root, "attention_dropout", 0.1);
  config.dropout = probability(root, "hidden_dropout", 0.1);
  config.tied_head = !root.boolean_or("untie_embeddings_and_output_weights", false);
  config.has_pooler = root.boolean_or("bert_binary_head", true);
  config.token_types = config.has_pooler ? 2 : 0;
  config.head = config.has_pooler ? Head::Pretraining : Head::MaskedLanguage;
  refuse(root, "swiglu", "gated MLPs of this family; remove it");
  if (norm_of(root) != NormForm::Layer)
    fail_at(root, "normalization", "not simulated for this family; use LayerNorm");
  if (!has_learned_positions(root))
    fail_at(root, "position_embedding_type", "not simulated for this family; use learned_absolute");
  return config;
}

}  // namespace tidemark::config
