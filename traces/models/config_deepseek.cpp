// deepseek_v2 and deepseek_v3: latent attention, a dense MLP in the first blocks, experts picked
// from groups; glm4_moe has these blocks and experts beside LLaMA's attention.
#include <fmt/format.h>

#include <numeric>

#include "traces/models/config_decoder.h"

namespace tidemark::config {
namespace {

LatentConfig latent(Fields& root) {
  LatentConfig config{.query_rank = 1536,
                      .key_rank = count(root, "kv_lora_rank", 512, widest),
                      .plain_width = count(root, "qk_nope_head_dim", 128, widest),
                      .rotary_width = count(root, "qk_rope_head_dim", 64, widest),
                      .value_width = count(root, "v_head_dim", 128, widest)};
  const auto rank = root.member("q_lora_rank");
  const bool has_none = rank && rank->kind() == JsonKind::Null;
  config.query_rank = has_none ? 0 : count(root, "q_lora_rank", config.query_rank, widest);
  if (config.rotary_width % 2 != 0)
    fail_at(root, "qk_rope_head_dim", "positions turn pairs; use an even number");
  return config;
}

std::vector<std::int64_t> first_blocks(std::int64_t count) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

// The picked weights are never made to sum to 1, whatever norm_topk_prob says.
ExpertsConfig sorted_experts_of(Fields& root) {
  ExpertsConfig config{.count = count(root, "n_routed_experts", 64, most_experts),
                       .per_token = count(root, "num_experts_per_tok", 0, most_experts),
                       .width = count(root, "moe_intermediate_size", 1407, widest),
                       .gates_shared = false,
                       .router = RouterForm::SoftmaxSorted};
  config.shared_width = config.width * count(root, "n_shared_experts", 2, most_experts);
  if (config.per_token == 0)
    fail_at(root, "num_experts_per_tok", "says how many experts a token goes to; give it");
  require_per_token(root, config);
  if (root.text_or("topk_method", "greedy") == "greedy") return config;
  one_of(root, "topk_method", {"greedy", "group_limited_greedy"});
  config.groups = count(root, "n_group", 1, most_experts);
  config.best_groups = count(root, "topk_group", 1, most_experts);
  require_groups(root, config);
  return config;
}

ExpertsConfig experts(Fields& root, const ExpertsConfig& usual) {
  ExpertsConfig config{.count = count(root, "n_routed_experts", usual.count, most_experts),
                       .per_token = count(root, "num_experts_per_tok", 8, most_experts),
                       .width = count(root, "moe_intermediate_size", usual.width, widest),
                       .renormalizes = root.boolean_or("norm_topk_prob", true),
                       .gates_shared = false,
                       .router = RouterForm::SigmoidOfGroups,
                       .groups = count(root, "n_group", usual.groups, most_experts),
                       .best_groups = count(root, "topk_group", usual.best_groups, most_experts)};
  config.shared_width = config.width * count(root, "n_shared_experts", 1, most_experts);
  require_per_token(root, config);
  require_groups(root, config);
  return config;
}

// Both versions but for their experts.
DecoderConfig with_latent(Fields& root, const DecoderConfig& usual, std::int64_t dense) {
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .key_heads_default_to_heads = usual.key_heads == 0,
                                        .has_bias_fields = true,
                                        .head_width_is_free = true});
  if (config.key_heads != config.heads)
    fail_at(root, "num_key_value_heads", "keys come out of what all heads share; use as many");
  config.latent = latent(root);
  config.head_width = config.latent.plain_width + config.latent.rotary_width;
  config.rotary_width = config.latent.rotary_width;
  config.dense_blocks =
      first_blocks(root.integer_or("first_k_dense_replace", dense, 0, most_blocks));
  return config;
}

}  // namespace

ModelConfig read_deepseek_v2(Fields& root) {
  const DecoderConfig usual{.family = "deepseek-v2", .key_heads = 0, .head_width = 64};
  DecoderConfig config = with_latent(root, usual, 0);
  config.latent.turn = LatentTurn::Complex;
  refuse(root, "mlp_bias", "biases of experts");
  config.experts = sorted_experts_of(root);
  return config;
}

ModelConfig read_deepseek_v3(Fields& root) {
  const DecoderConfig usual{.family = "deepseek-v3",
                            .width = 7168,
                            .depth = 61,
                            .heads = 128,
                            .mlp = 18432,
                            .key_heads = 128,
                            .head_width = 64,
                            .vocabulary = 129280,
                            .positions = 4096};
  DecoderConfig config = with_latent(root, usual, 3);
  config.experts = experts(root, {.count = 256, .width = 2048, .groups = 8, .best_groups = 4});
  config.further_tokens = root.integer_or("num_nextn_predict_layers", 0, 0, most_further_tokens);
  if (!root.boolean_or("rope_interleave", true))
    fail_at(root, "rope_interleave", "pairs that are halves are not modelled; use true");
  return config;
}

// GLM-4.5 and 4.6 (arXiv 2508.06471). The output's product has no bias, whatever the others have.
ModelConfig read_glm4_moe(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "glm4-moe",
                                                  .depth = 46,
                                                  .heads = 96,
                                                  .mlp = 10944,
                                                  .key_heads = 8,
                                                  .vocabulary = 151552,
                                                  .positions = 131072,
                                                  .epsilon = 1e-5},
                                        .key_heads_default_to_heads = false,
                                        .rotary_share = 0.5});
  config.qkv_bias = root.boolean_or("attention_bias", false);
  if (root.boolean_or("use_qk_norm", false)) config.head_norm = HeadNorm::PerHead;
  config.dense_blocks = first_blocks(root.integer_or("first_k_dense_replace", 1, 0, most_blocks));
  config.experts = experts(root, {.count = 128, .width = 1408, .groups = 1, .best_groups = 1});
  config.further_tokens = root.integer_or("num_nextn_predict_layers", 0, 0, most_further_tokens);
  return config;
}

}  // namespace tidemark::config
