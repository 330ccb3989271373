// phi3, which is Phi-4's type, too, olmo2 and olmo3: RMSNorms like LLaMA's with other products or
// places.
#include "traces/models/config_decoder.h"

namespace tidemark::config {

// One product makes q, k and v, one gate and up.
ModelConfig read_phi3(Fields& root) {
  const DecoderConfig usual{.family = "phi3",
                            .width = 3072,
                            .mlp = 8192,
                            .vocabulary = 32064,
                            .positions = 4096,
                            .epsilon = 1e-5,
                            .mlp_form = MlpForm::GatedPacked,
                            .packed_qkv = true,
                            .unpacking = Unpacking::Slices,
                            .joins_nothing = true};
  DecoderConfig config = decoder(root, {.usual = usual, .rotary_share = 1});
  config.residual_dropout = probability(root, "resid_pdrop", 0);
  config.sliding_window = optional_window(root);
  return config;
}

// Norms of what the branches make, and of all of q and of k.
DecoderConfig olmo(Fields& root, std::string_view family) {
  const DecoderConfig usual{.family = family,
                            .vocabulary = 50304,
                            .epsilon = 1e-5,
                            .norm = NormForm::RmsFp32,
                            .block = BlockForm::BranchNorm,
                            .head_norm = HeadNorm::WholeWidth,
                            .rotates_in_fp32 = true};
  return decoder(root, {.usual = usual, .has_bias_fields = true});
}

ModelConfig read_olmo2(Fields& root) { return olmo(root, "olmo2"); }

// Blocks with a window turn by tables of their own, which nothing scales.
ModelConfig read_olmo3(Fields& root) {
  DecoderConfig config = olmo(root, "olmo3");
  config.sliding_window = count(root, "sliding_window", 4096, most_positions);
  config.global_every = global_every(root, "sliding_window_pattern", 4, config.depth);
  config.local_rotary = Rotary{.theta = config.rotary.theta};
  return config;
}

}  // namespace tidemark::config
