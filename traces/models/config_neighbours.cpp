// glm4, ernie4_5, cohere and cohere2, in whose heads elements turn with their neighbours.
#include "traces/models/config_decoder.h"

namespace tidemark::config {

// GLM-4-0414: half of a head turns, both branches have two norms.
ModelConfig read_glm4(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "glm4",
                                                  .depth = 40,
                                                  .mlp = 13696,
                                                  .key_heads = 2,
                                                  .vocabulary = 151552,
                                                  .positions = 131072,
                                                  .epsilon = 1.5625e-7,
                                                  .block = BlockForm::SandwichNorm,
                                                  .mlp_form = MlpForm::GatedPacked,
                                                  .joins_nothing = true,
                                                  .turn = HeadTurn::SpreadNeighbours},
                                        .key_heads_default_to_heads = false,
                                        .head_width_is_free = true,
                                        .rotary_share = 0.5});
  config.qkv_bias = root.boolean_or("attention_bias", true);
  return config;
}

// q and k turn in fp32, by tables in fp32.
ModelConfig read_ernie(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "ernie4-5",
                                                  .width = 1024,
                                                  .depth = 18,
                                                  .heads = 16,
                                                  .mlp = 3072,
                                                  .key_heads = 2,
                                                  .vocabulary = 103424,
                                                  .positions = 131072,
                                                  .epsilon = 1e-5,
                                                  .turn = HeadTurn::SpreadNeighbours,
                                                  .widens_rotated = true,
                                                  .rotates_in_fp32 = true,
                                                  .rotary = {.theta = 500'000}},
                                        .key_heads_default_to_heads = false,
                                        .head_width_is_free = true,
                                        .tied = true});
  config.qkv_bias = config.out_bias = config.mlp_bias = root.boolean_or("use_bias", false);
  return config;
}

namespace {

// LayerNorms without a bias, op by op in fp32; both branches read the same one.
DecoderConfig command_r(Fields& root, std::string_view family) {
  constexpr double largest = 1e6, smallest = 1e-6;
  DecoderConfig config = decoder(root, {.usual = {.family = family,
                                                  .width = 8192,
                                                  .depth = 40,
                                                  .heads = 64,
                                                  .mlp = 22528,
                                                  .vocabulary = 256000,
                                                  .positions = 8192,
                                                  .epsilon = 1e-5,
                                                  .norm = NormForm::LayerComposed,
                                                  .block = BlockForm::ParallelOneNorm,
                                                  .sums_from_left = true,
                                                  .names = BlockNames::Attention,
                                                  .turn = HeadTurn::Neighbours,
                                                  .widens_rotated = true},
                                        .has_bias_fields = true,
                                        .tied = true,
                                        .epsilon_key = "layer_norm_eps"});
  config.logit_factor = root.number_or("logit_scale", 0.0625, smallest, largest);
  for (const std::string_view key :  // of the published files, which transformers does not read
       {"model_max_length", "_sliding_window_pattern", "cache_implementation", "layer_switch",
        "order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
        "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
        "use_parallel_embedding"})
    root.find(key);
  return config;
}

}  // namespace

ModelConfig read_cohere(Fields& root) {
  DecoderConfig config = command_r(root, "cohere");
  if (root.boolean_or("use_qk_norm", false)) config.head_norm = HeadNorm::LayerComposed;
  return config;
}

// Heads turn where there is a window.
ModelConfig read_cohere2(Fields& root) {
  DecoderConfig config = command_r(root, "cohere2");
  config.global_every = global_every(root, "sliding_window_pattern", 4, config.depth);
  config.sliding_window = required_window(root, 4096);
  config.still_every = config.global_every;
  return config;
}

}  // namespace tidemark::config
