// mixtral, qwen2_moe, qwen3_moe, olmoe and gpt_oss: decoders with experts.
#include <fmt/format.h>

#include "traces/models/config_decoder.h"

namespace tidemark::config {
namespace {

ExpertsConfig experts(Fields& root, const ExpertsConfig& usual, std::string_view count_key,
                      std::string_view width_key) {
  ExpertsConfig config = usual;
  config.count = count(root, count_key, usual.count, most_experts);
  config.per_token = count(root, "num_experts_per_tok", usual.per_token, most_experts);
  config.width = count(root, width_key, usual.width, widest);
  require_per_token(root, config);
  refuse(root, "output_router_logits", "the loss that balances experts; remove it");
  return config;
}

// Qwen's: a plain MLP in some blocks, and windows that are off unless they are switched on.
void read_qwen_moe(Fields& root, DecoderConfig& config) {
  config.experts.every = count(root, "decoder_sparse_step", 1, most_blocks);
  config.experts.renormalizes = root.boolean_or("norm_topk_prob", false);
  if (const auto blocks = root.find("mlp_only_layers"))
    for (const JsonView block : blocks->items())
      config.dense_blocks.push_back(block.integer(0, most_blocks));
  config.sliding_window = switched_window(root);
}

}  // namespace

void require_per_token(Fields& root, const ExpertsConfig& config, std::string_view key) {
  if (config.per_token > config.count)
    fail_at(root, key,
            fmt::format("{} of {} experts; use {} or less", config.per_token, config.count,
                        config.count));
}

void require_groups(Fields& root, const ExpertsConfig& config) {
  require_divides(root, "n_group", config.groups, "n_routed_experts", config.count);
  if (config.best_groups > config.groups)
    fail_at(root, "topk_group",
            fmt::format("{} of {} groups; use {} or less", config.best_groups, config.groups,
                        config.groups));
}

ModelConfig read_mixtral(Fields& root) {
  const DecoderConfig usual{
      .family = "mixtral", .mlp = 14336, .key_heads = 8, .positions = 131072, .epsilon = 1e-5};
  DecoderConfig config = decoder(root, {.usual = usual, .key_heads_default_to_heads = false});
  if (!root.find("rope_theta") && !root.find("rope_parameters")) config.rotary.theta = 1e6;
  config.sliding_window = optional_window(root);
  config.experts = experts(
      root,
      {.count = 8, .per_token = 2, .width = 14336, .renormalizes = true, .float_shares = true},
      "num_local_experts", "intermediate_size");
  if (root.number_or("router_jitter_noise", 0, 0, 1) != 0)
    fail_at(root, "router_jitter_noise", "noise on what goes into the router; use 0");
  return config;
}

ModelConfig read_qwen2_moe(Fields& root) {
  const DecoderConfig usual{.family = "qwen2-moe",
                            .width = 2048,
                            .depth = 24,
                            .heads = 16,
                            .mlp = 5632,
                            .key_heads = 16,
                            .vocabulary = 151936,
                            .positions = 32768,
                            .own_attention = true};
  DecoderConfig config = decoder(root, {.usual = usual, .key_heads_default_to_heads = false});
  config.qkv_bias = root.boolean_or("qkv_bias", true);
  config.experts = experts(root, {.count = 60, .per_token = 4, .width = 1408}, "num_experts",
                           "moe_intermediate_size");
  config.experts.shared_width = count(root, "shared_expert_intermediate_size", 5632, widest);
  read_qwen_moe(root, config);
  return config;
}

ModelConfig read_qwen3_moe(Fields& root) {
  const DecoderConfig usual{.family = "qwen3-moe",
                            .width = 2048,
                            .depth = 24,
                            .mlp = 6144,
                            .key_heads = 4,
                            .vocabulary = 151936,
                            .positions = 32768,
                            .head_norm = HeadNorm::PerHead};
  DecoderConfig config =
      decoder(root, {.usual = usual, .key_heads_default_to_heads = false, .has_bias_fields = true});
  config.experts = experts(root, {.count = 128, .per_token = 8, .width = 768}, "num_experts",
                           "moe_intermediate_size");
  read_qwen_moe(root, config);
  return config;
}

ModelConfig read_olmoe(Fields& root) {
  const DecoderConfig usual{.family = "olmoe",
                            .width = 2048,
                            .depth = 16,
                            .heads = 16,
                            .mlp = 2048,
                            .vocabulary = 50304,
                            .positions = 4096,
                            .epsilon = 1e-5,
                            .head_norm = HeadNorm::WholeWidth,
                            .own_attention = true};
  DecoderConfig config = decoder(root, {.usual = usual, .has_bias_fields = true});
  config.experts = experts(root, {.count = 64, .per_token = 8, .width = 2048}, "num_experts",
                           "intermediate_size");
  config.experts.renormalizes = root.boolean_or("norm_topk_prob", false);
  if (root.find("clip_qkv")) fail_at(root, "clip_qkv", "clipped q, k and v; remove it");
  return config;
}

// Attention with sinks, which no fused kernel of PyTorch has. The published weights of experts have
// four bits, and are made whole for training: what a file says of them is told (config_notes.cpp).
ModelConfig read_gpt_oss(Fields& root) {
  const DecoderConfig usual{.family = "gpt-oss",
                            .width = 2880,
                            .depth = 36,
                            .heads = 64,
                            .mlp = 2880,
                            .key_heads = 8,
                            .head_width = 64,
                            .vocabulary = 201088,
                            .positions = 131072,
                            .epsilon = 1e-5,
                            .qkv_bias = true,
                            .out_bias = true,
                            .norm = NormForm::RmsFp32,
                            .has_sinks = true,
                            .tables_are_halves = true,
                            .rotary = {.theta = 150'000}};
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .key_heads_default_to_heads = false,
                                        .has_bias_fields = true,
                                        .head_width_is_free = true});
  config.experts = experts(root,
                           {.count = 128,
                            .per_token = 4,
                            .width = 2880,
                            .is_clamped = true,
                            .router = RouterForm::SoftmaxOfPicked},
                           "num_local_experts", "intermediate_size");
  config.sliding_window = required_window(root, 128);
  for (const std::string_view key :  // of numbers that stand elsewhere, or change values alone
       {"experts_per_token", "initial_context_length", "swiglu_limit", "swiglu_alpha"})
    root.find(key);
  config.global_every =
      root.find("layer_types") ? global_every(root, "layer_types", 2, config.depth) : 2;
  return config;
}

}  // namespace tidemark::config
