// LLaMA's layer as Megatron-LM has it, small enough to count in the head.
#pragma once

#include "tests/support/small_models.h"

namespace tidemark {

/// 64 wide, four heads, MLPs of 128, 32 tokens; with experts in place of the MLP, if any.
inline Model small_megatron(std::int64_t depth, std::int64_t experts = 0) {
  DecoderConfig config{.family = "megatron-gpt",
                       .width = 64,
                       .depth = depth,
                       .heads = 4,
                       .mlp = 128,
                       .key_heads = 4,
                       .head_width = 16,
                       .vocabulary = 512,
                       .positions = 32};
  config.mlp_form = MlpForm::GatedPacked;
  config.packed_qkv = true;
  config.unpacking = Unpacking::Slices;
  config.experts = {.count = experts, .per_token = 2, .width = 128};
  return small_model("small-megatron", config);
}

}  // namespace tidemark
