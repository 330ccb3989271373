// gemma, gemma2 and gemma3_text: norms with 1 + weight, tables of words that are scaled, and from
// the second on two norms per branch and blocks that see a window only.
#include <cmath>

#include "traces/models/config_decoder.h"

namespace tidemark::config {
namespace {

DecoderConfig gemma(Fields& root, DecoderConfig usual, std::string_view activation_key) {
  usual.norm = NormForm::RmsOnePlus;
  usual.activation = ActivationForm::GeluTanh;
  usual.head_width = 256;
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .key_heads_default_to_heads = false,
                                        .has_bias_fields = true,
                                        .head_width_is_free = true,
                                        .tied = true,
                                        .activation_key = activation_key});
  config.embedding_factor = std::sqrt(static_cast<double>(config.width));
  return config;
}

double cap(Fields& root, std::string_view key, double fallback) {
  const auto stated = root.member(key);
  if (stated && stated->kind() == JsonKind::Null) return 0;
  return root.number_or(key, fallback, 0, 1e6);
}

// What the second and the third have in common.
DecoderConfig with_windows(Fields& root, DecoderConfig usual, std::string_view pattern_key,
                           std::int64_t pattern) {
  usual.block = BlockForm::SandwichNorm;
  DecoderConfig config = gemma(root, usual, "hidden_activation");
  config.sliding_window = count(root, "sliding_window", 4096, most_positions);
  config.global_every = global_every(root, pattern_key, pattern, config.depth);
  const double scalar = root.number_or("query_pre_attn_scalar", 256, 1, 1e6);
  if (scalar != static_cast<double>(config.head_width)) config.score_factor = 1 / std::sqrt(scalar);
  return config;
}

}  // namespace

// `hidden_activation` is the newer name, and null in the files of the first models.
ModelConfig read_gemma(Fields& root) {
  const DecoderConfig usual{.family = "gemma",
                            .width = 3072,
                            .depth = 28,
                            .heads = 16,
                            .mlp = 24576,
                            .key_heads = 16,
                            .vocabulary = 256000,
                            .positions = 8192};
  return gemma(root, usual, root.find("hidden_activation") ? "hidden_activation" : "hidden_act");
}

ModelConfig read_gemma2(Fields& root) {
  DecoderConfig config = with_windows(root,
                                      {.family = "gemma2",
                                       .width = 2304,
                                       .depth = 26,
                                       .heads = 8,
                                       .mlp = 9216,
                                       .key_heads = 4,
                                       .vocabulary = 256000,
                                       .positions = 8192},
                                      "sliding_window_pattern", 2);
  config.score_cap = cap(root, "attn_logit_softcapping", 50);
  config.logit_cap = cap(root, "final_logit_softcapping", 30);
  return config;
}

ModelConfig read_gemma3_text(Fields& root) {
  DecoderConfig config = with_windows(root,
                                      {.family = "gemma3",
                                       .width = 2304,
                                       .depth = 26,
                                       .heads = 8,
                                       .mlp = 9216,
                                       .key_heads = 4,
                                       .vocabulary = 262208,
                                       .positions = 131072,
                                       .head_norm = HeadNorm::PerHead,
                                       .rotary = {.theta = 1e6}},
                                      "sliding_window_pattern", 6);
  config.table_scales = true;
  config.score_cap = cap(root, "attn_logit_softcapping", 0);
  config.logit_cap = cap(root, "final_logit_softcapping", 0);
  config.local_rotary = Rotary{.theta = root.number_or("rope_local_base_freq", 10000, 1, 1e12)};
  refuse(root, "use_bidirectional_attention", "attention to what comes after; remove it");
  return config;
}

}  // namespace tidemark::config
