// GPTModel, HybridModel, BertModel and T5Model of Megatron-LM's core, by the names of its command
// line (core/models/{gpt/gpt,hybrid/hybrid,bert/bert,T5/t5}_model.py, transformer_config.py):
// one product for q, k and v, dropout of 0.1; GPTs and hybrids with biases unless they are left
// out, learned positions or rotation, LayerNorm or RMSNorm, GELU, SwiGLU or a squared ReLU.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

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

bool router_is_wide(Fields& root) {
  const std::string_view name = root.text_or("moe_router_dtype", "");
  if (!name.empty() && name != "fp32")
    fail_at(root, "moe_router_dtype", "not simulated; use fp32, or leave it out");
  return !name.empty();
}

ExpertsConfig experts_of(Fields& root, const DecoderConfig& config) {
  ExpertsConfig experts{.count = count(root, "num_experts", 0, most_experts)};
  if (experts.count == 0) return experts;
  experts.per_token = count(root, "moe_router_topk", 2, most_experts);
  require_per_token(root, experts, "moe_router_topk");
  experts.width = count(root, "moe_ffn_hidden_size", config.mlp, widest);
  experts.shared_width = count(root, "moe_shared_expert_intermediate_size", 0, widest);
  experts.is_grouped = root.boolean_or("moe_grouped_gemm", true);
  experts.wide_router = router_is_wide(root);
  experts.gates_shared = root.boolean_or("moe_shared_expert_gate", false);
  if (config.mlp_bias)
    fail_at(root, "add_bias_linear", "biases of experts are not simulated; set it to false");
  return experts;
}

// Which blocks have no experts: a list says 0 of them, a number that every n-th has some from the
// first one on.
void read_dense_blocks(Fields& root, DecoderConfig& config) {
  constexpr std::string_view key = "moe_layer_freq";
  const auto list = root.find(key);
  if (!list || list->kind() != JsonKind::List) {
    const std::int64_t every = count(root, key, 1, most_blocks);
    for (std::int64_t block = 0; block < config.depth; ++block)
      if (block % every != 0) config.dense_blocks.push_back(block);
    return;
  }
  std::int64_t block = 0;
  for (const JsonView item : list->items()) {
    if (item.integer(0, 1) == 0) config.dense_blocks.push_back(block);
    ++block;
  }
  if (block != config.depth)
    list->fail(fmt::format("{} blocks, but num_layers says {}; use as many", block, config.depth));
}

void read_mlp(Fields& root, DecoderConfig& config) {
  const bool is_gated = root.boolean_or("swiglu", false);
  const bool squares = root.boolean_or("squared_relu", false);
  if (is_gated && squares)
    fail_at(root, "squared_relu", "one activation; set either this or swiglu to false");
  config.mlp = count(root, "ffn_hidden_size", usual_mlp(config.width, is_gated), widest);
  config.mlp_form = is_gated ? MlpForm::GatedPacked : MlpForm::Plain;
  config.activation = is_gated  ? ActivationForm::Silu
                      : squares ? ActivationForm::SquaredRelu
                                : ActivationForm::Gelu;
}

// But for what says where blocks and positions are.
DecoderConfig megatron_decoder(Fields& root, std::string_view family) {
  DecoderConfig config{.family = family};
  config.width = count(root, "hidden_size", 768, widest);
  config.heads = count(root, "num_attention_heads", 12, most_heads);
  config.key_heads = count(root, "num_query_groups", config.heads, most_heads);
  require_divides(root, "num_query_groups", config.key_heads, "num_attention_heads", config.heads);
  if (!root.find("kv_channels"))
    require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  config.head_width = count(root, "kv_channels", config.width / config.heads, widest);
  read_mlp(root, config);
  config.vocabulary = count(root, "vocab_size", 50257, most_words);
  config.positions = count(root, "max_position_embeddings", 1024, most_positions);
  config.norm = norm_of(root);
  config.epsilon = epsilon(root, "norm_epsilon", 1e-5);
  config.qkv_bias = config.out_bias = config.mlp_bias = root.boolean_or("add_bias_linear", true);
  config.packed_qkv = config.plain_scores = true;
  config.unpacking = Unpacking::Slices;
  config.tied_head = !root.boolean_or("untie_embeddings_and_output_weights", false);
  config.attention_dropout = probability(root, "attention_dropout", 0.1);
  config.embedding_dropout = config.residual_dropout = probability(root, "hidden_dropout", 0.1);
  if (root.boolean_or("qk_layernorm", false))
    config.head_norm = config.norm == NormForm::Rms ? HeadNorm::PerHead : HeadNorm::LayerPerHead;
  return config;
}

// MLATransformerConfig, with the defaults of the command line. Norms of q and k are those of the
// narrow tensors; kernels turn heads unless words have learned positions, too.
void read_latent(Fields& root, DecoderConfig& config) {
  if (!root.boolean_or("multi_latent_attention", false)) return;
  if (config.key_heads != config.heads)
    fail_at(root, "num_query_groups", "keys come out of what all heads share; leave it out");
  const bool is_fused = !config.learned_positions && root.boolean_or("apply_rope_fusion", true);
  LatentConfig& latent = config.latent;
  latent = {.query_rank = root.find("q_lora_rank") ? count(root, "q_lora_rank", 0, widest) : 0,
            .key_rank = count(root, "kv_lora_rank", 32, widest),
            .plain_width = count(root, "qk_head_dim", 128, widest),
            .rotary_width = count(root, "qk_pos_emb_head_dim", 64, widest),
            .value_width = count(root, "v_head_dim", 128, widest),
            .turn = is_fused ? LatentTurn::Fused : LatentTurn::Called,
            .norm = {},
            .epsilon = config.epsilon};
  if (config.head_norm != HeadNorm::None) latent.norm = config.norm;
  if (latent.rotary_width % 2 != 0)
    fail_at(root, "qk_pos_emb_head_dim", "positions turn pairs; use an even number");
  config.head_norm = HeadNorm::None;
  config.qkv_bias = config.packed_qkv = false;
  config.head_width = latent.plain_width + latent.rotary_width;
  config.rotary_width = latent.rotary_width;
}

// "MEM*/*E/*E": blocks, then those that predict each further token.
void read_pattern(Fields& root, DecoderConfig& config) {
  const auto pattern = root.find("hybrid_layer_pattern");
  if (!pattern) root.json().fail("need \"hybrid_layer_pattern\", which says what each block is");
  std::string_view rest = pattern->text();
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = rest.find('/');
    parts.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (parts[0].find('|') != std::string_view::npos)
    pattern->fail("stages are asked for with --mesh and --schedule; leave '|' out");
  config.mixers = mixers_of_letters(parts[0], *pattern);
  config.depth = static_cast<std::int64_t>(config.mixers.size());
  if (config.depth == 0 || config.depth > most_blocks)
    pattern->fail(fmt::format("{} blocks; need 1 to {}", config.depth, most_blocks));
  if (count(root, "num_layers", config.depth, most_blocks) != config.depth)
    fail_at(root, "num_layers",
            fmt::format("hybrid_layer_pattern names {} blocks; use as many", config.depth));
  config.further_tokens = static_cast<std::int64_t>(parts.size()) - 1;
  if (config.further_tokens == 0) return;
  config.further_mixers = mixers_of_letters(parts[1], *pattern);
  for (const std::string_view part : parts | std::views::drop(1))
    if (part != parts[1]) pattern->fail("blocks that predict further tokens are alike; repeat one");
  config.repeats_further = root.boolean_or("mtp_use_repeated_layer", false);
}

StateSpaceConfig state_space_of(Fields& root, const DecoderConfig& config) {
  StateSpaceConfig found{.head_width = count(root, "mamba_head_dim", 64, widest),
                         .groups = count(root, "mamba_num_groups", 8, most_heads),
                         .state = count(root, "mamba_state_dim", 128, widest)};
  if (!root.find("mamba_num_heads"))  // expand = 2
    require_divides(root, "mamba_head_dim", found.head_width, "2 · hidden_size", 2 * config.width);
  found.heads = count(root, "mamba_num_heads",
                      std::max<std::int64_t>(2 * config.width / found.head_width, 1), most_heads);
  require_divides(root, "mamba_num_groups", found.groups, "mamba_num_heads", found.heads);
  return found;
}

}  // namespace

ModelConfig read_megatron_gpt(Fields& root) {
  DecoderConfig config = megatron_decoder(root, "megatron-gpt");
  config.depth = count(root, "num_layers", 12, most_blocks);
  config.learned_positions = has_learned_positions(root);
  read_latent(root, config);
  config.experts = experts_of(root, config);
  if (config.experts.count > 0) read_dense_blocks(root, config);
  config.further_tokens = root.integer_or("mtp_num_layers", 0, 0, most_further_tokens);
  config.repeats_further =
      config.further_tokens > 0 && root.boolean_or("mtp_use_repeated_layer", false);
  return config;
}

ModelConfig read_megatron_hybrid(Fields& root) {
  DecoderConfig config = megatron_decoder(root, "megatron-hybrid");
  read_pattern(root, config);
  config.has_positions = root.text_or("position_embedding_type", "none") != "none";
  config.learned_positions = config.has_positions && has_learned_positions(root);
  config.state_space = state_space_of(root, config);
  if (!has_experts(config.mixers) && !has_experts(config.further_mixers)) return config;
  config.experts = experts_of(root, config);
  if (config.experts.count == 0)
    fail_at(root, "num_experts", "blocks 'E' have experts; say how many");
  config.experts.is_gated = config.mlp_form != MlpForm::Plain;
  if (root.find("moe_latent_size"))
    config.experts.latent = count(root, "moe_latent_size", 1, widest);
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

// Both stacks are as wide; places are learned (examples/t5/pretrain_t5.py).
ModelConfig read_megatron_t5(Fields& root) {
  const DecoderConfig like = megatron_decoder(root, "megatron-t5");
  MegatronT5Config config{.width = like.width,
                          .heads = like.heads,
                          .head_width = like.head_width,
                          .mlp = like.mlp,
                          .vocabulary = count(root, "vocab_size", 29184, most_words),
                          .positions = count(root, "max_position_embeddings", 512, most_positions),
                          .norm = like.norm,
                          .epsilon = like.epsilon,
                          .dropout = like.residual_dropout,
                          .attention_dropout = like.attention_dropout,
                          .mlp_form = like.mlp_form,
                          .activation = like.activation,
                          .bias = like.mlp_bias,
                          .tied_head = like.tied_head};
  config.depth = count(root, "encoder_num_layers", 12, most_blocks);
  config.decoder_depth = count(root, "decoder_num_layers", config.depth, most_blocks);
  if (like.key_heads != like.heads)
    fail_at(root, "num_query_groups",
            "who attends to another has as many heads of keys; leave it out");
  if (like.head_norm != HeadNorm::None)
    fail_at(root, "qk_layernorm", "not simulated for this family; remove it");
  if (!has_learned_positions(root))
    fail_at(root, "position_embedding_type", "not simulated for this family; use learned_absolute");
  return config;
}

}  // namespace tidemark::config
