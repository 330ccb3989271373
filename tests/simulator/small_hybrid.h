// Small hybrids of state-space layers, attention, MLPs and experts, whose sizes all differ.
#pragma once

#include "tests/simulator/parallel/ranks.h"
#include "traces/models/config_reader.h"

namespace tidemark::small_hybrid {

inline constexpr std::int64_t width = 32, tokens = 16, heads = 4, head_width = 8, groups = 2,
                              state = 4;
inline constexpr std::int64_t inner = heads * head_width, channels = inner + 2 * groups * state;
inline constexpr std::int64_t packed = inner + channels + heads, mlp_width = 48;
inline constexpr std::int64_t expert_width = 24, shared_width = 40, words = 61;

inline Model hybrid(std::string_view pattern, std::string_view more = "") {
  const std::string config = fmt::format(
      R"({{"model_type": "nemotron_h", "hybrid_override_pattern": "{}", "hidden_size": {},
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": {},
          "intermediate_size": {}, "mamba_num_heads": {}, "mamba_head_dim": {}, "n_groups": {},
          "ssm_state_size": {}, "chunk_size": 8, "n_routed_experts": 4, "num_experts_per_tok": 2,
          "moe_intermediate_size": {}, "moe_shared_expert_intermediate_size": {},
          "max_position_embeddings": {}{}}})",
      pattern, width, words, mlp_width, heads, head_width, groups, state, expert_width,
      shared_width, tokens, more);
  return small_model(fmt::format("small-{}", pattern),
                     read_model_config(config, "hybrid.json").config);
}

inline StepOptions megatron(std::int64_t ranks = 1) {
  StepOptions options{.precision = Precision::Bf16,
                      .attention = Attention::Flash,
                      .master_weights = true,
                      .framework = "megatron"};
  options.mesh[Axis::Tensor] = ranks;
  options.sequence_parallel = ranks > 1;
  return options;
}

inline std::string refusal(const Model& model, const StepOptions& options) {
  try {
    build_rank_trace(model, options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

}  // namespace tidemark::small_hybrid
