// glm4 and ernie4_5, in whose heads elements turn with their neighbours.
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

}  // namespace tidemark::config
