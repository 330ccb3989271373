// llama, mistral, qwen2 and qwen3, granite, arcee, smollm3, seed_oss, exaone4 and hunyuan_v1_dense,
// which differ from each other in fields only.
#include <fmt/format.h>

#include "traces/models/config_decoder.h"

namespace tidemark::config {
ModelConfig read_llama(Fields& root) {
  DecoderConfig config = decoder(root, {.has_bias_fields = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  return config;
}

ModelConfig read_mistral(Fields& root) {
  DecoderConfig config =
      decoder(root, {.usual = {.mlp = 14336, .key_heads = 8, .positions = 131072},
                     .key_heads_default_to_heads = false});
  const auto window = root.member("sliding_window");
  const bool none = window && window->kind() == JsonKind::Null;
  config.sliding_window = none ? 0 : count(root, "sliding_window", 4096, most_positions);
  config.own_loss = true;
  return config;
}

// q, k and v have a bias that no field of the file mentions.
ModelConfig read_qwen2(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.mlp = 22016,
                                                  .key_heads = 32,
                                                  .vocabulary = 151936,
                                                  .positions = 32768,
                                                  .qkv_bias = true},
                                        .key_heads_default_to_heads = false});
  config.sliding_window = switched_window(root);
  return config;
}

ModelConfig read_qwen3(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.mlp = 22016,
                                                  .key_heads = 32,
                                                  .head_width = 128,
                                                  .vocabulary = 151936,
                                                  .positions = 32768,
                                                  .head_norm = HeadNorm::PerHead},
                                        .key_heads_default_to_heads = false,
                                        .has_bias_fields = true,
                                        .head_width_is_free = true});
  config.sliding_window = switched_window(root);
  return config;
}

// Factors of what the table holds, of scores, branches and logits.
ModelConfig read_granite(Fields& root) {
  constexpr double largest = 1e6, smallest = 1e-6;
  DecoderConfig config = decoder(root, {.usual = {.family = "granite"}, .has_bias_fields = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  config.embedding_factor = root.number_or("embedding_multiplier", 1, smallest, largest);
  config.table_scales = true;  // whose code keeps no name for what it scales
  config.score_factor = root.number_or("attention_multiplier", 1, smallest, largest);
  config.branch_factor = root.number_or("residual_multiplier", 1, smallest, largest);
  config.logit_factor = 1 / root.number_or("logits_scaling", 1, smallest, largest);
  return config;
}

// An MLP of two linears that squares what ReLU leaves.
ModelConfig read_arcee(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "arcee",
                                                  .width = 2560,
                                                  .mlp = 18432,
                                                  .positions = 4096,
                                                  .epsilon = 1e-5,
                                                  .mlp_form = MlpForm::Plain,
                                                  .activation = ActivationForm::SquaredRelu},
                                        .has_bias_fields = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  return config;
}

// In some blocks tokens have no places: every fourth, or those with a 0 in `no_rope_layers`.
ModelConfig read_smollm3(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "smollm3",
                                                  .width = 2048,
                                                  .depth = 36,
                                                  .heads = 16,
                                                  .key_heads = 4,
                                                  .vocabulary = 128256,
                                                  .positions = 32768,
                                                  .rotary = {.theta = 2e6}},
                                        .key_heads_default_to_heads = false,
                                        .has_bias_fields = true,
                                        .tied = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  config.still_every = count(root, "no_rope_layer_interval", 4, most_blocks);
  if (const auto turns = root.find("no_rope_layers")) {
    std::vector<bool> is_still;
    for (const JsonView turn : turns->items()) is_still.push_back(turn.integer(0, 1) == 0);
    if (std::ssize(is_still) != config.depth)
      turns->fail(fmt::format("{} numbers for {} layers", is_still.size(), config.depth));
    config.still_every = every_nth(is_still, "a layer without rotation", *turns);
  }
  refuse(root, "use_sliding_window", "windows where nothing turns; remove it");
  root.find("sliding_window");  // which is in force with that alone
  return config;
}

// Dropout of what each branch gives, before it returns.
ModelConfig read_seed_oss(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "seed-oss",
                                                  .depth = 64,
                                                  .heads = 80,
                                                  .mlp = 27648,
                                                  .key_heads = 8,
                                                  .head_width = 128,
                                                  .vocabulary = 155136,
                                                  .positions = 524288,
                                                  .attention_dropout = 0.1,
                                                  .drops_inside = true},
                                        .key_heads_default_to_heads = false,
                                        .head_width_is_free = true});
  config.qkv_bias = root.boolean_or("attention_bias", true);
  config.out_bias = root.boolean_or("attention_out_bias", false);
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  config.residual_dropout = probability(root, "residual_dropout", 0.1);
  return config;
}

// Norms of what branches make; heads turn where there is a window, or everywhere if there is none.
ModelConfig read_exaone4(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.family = "exaone4",
                                                  .mlp = 16384,
                                                  .vocabulary = 102400,
                                                  .epsilon = 1e-5,
                                                  .block = BlockForm::BranchNorm,
                                                  .head_norm = HeadNorm::PerHead},
                                        .key_heads_default_to_heads = false});
  const std::int64_t every = global_every(root, "sliding_window_pattern", 4, config.depth);
  const auto window = root.member("sliding_window");
  if (window && window->kind() == JsonKind::Null) return config;
  config.sliding_window = count(root, "sliding_window", 4096, most_positions);
  config.global_every = config.still_every = every;
  return config;
}

// Norms of heads that have turned.
ModelConfig read_hunyuan(Fields& root) {
  return decoder(root, {.usual = {.family = "hunyuan",
                                  .vocabulary = 290943,
                                  .epsilon = 1e-5,
                                  .head_norm = HeadNorm::PerHead,
                                  .norms_turned = true},
                        .has_bias_fields = true});
}

}  // namespace tidemark::config
