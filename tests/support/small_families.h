// Small networks of the families whose code has operations of no known kind, each with a formula.
#pragma once

#include "tests/support/small_models.h"

namespace tidemark {

/// What is built: a network, and options beside batch and precision.
struct SmallStep {
  Model model;
  StepOptions options;
};

inline Model small_of_config(std::string name, std::string_view config) {
  return small_model(std::move(name), read_model_config(std::string(config), "small").config);
}

inline Model small_mixtral() {
  return small_decoder("small-mixtral",
                       R"("model_type": "mixtral", "num_key_value_heads": 2,
                          "intermediate_size": 24, "num_local_experts": 5,
                          "num_experts_per_tok": 2)",
                       2);
}

inline Model small_qwen_moe() {
  return small_decoder("small-qwen2-moe",
                       R"("model_type": "qwen2_moe", "num_key_value_heads": 4,
                          "intermediate_size": 48, "moe_intermediate_size": 24,
                          "shared_expert_intermediate_size": 24, "num_experts": 4,
                          "num_experts_per_tok": 2, "norm_topk_prob": true)",
                       2);
}

inline Model small_t5(std::string name = "small-t5") {
  return small_of_config(std::move(name),
                         R"({"model_type": "t5", "num_heads": 2, "d_model": 16, "d_kv": 8,
                             "d_ff": 32, "num_layers": 2, "vocab_size": 61})");
}

inline Model small_pvt() {
  return small_of_config("small-pvt",
                         R"({"model_type": "pvt", "image_size": 32, "depths": [1, 2, 1, 1],
                             "hidden_sizes": [8, 16, 24, 32], "num_attention_heads": [1, 2, 3, 4],
                             "mlp_ratios": [2, 2, 2, 2],
                             "sequence_reduction_ratios": [4, 2, 1, 1], "num_labels": 10})");
}

inline Model small_pvt_v2() {
  return small_of_config("small-pvt-v2",
                         R"({"model_type": "pvt_v2", "image_size": 64,
                             "depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32],
                             "num_attention_heads": [1, 2, 3, 4], "mlp_ratios": [2, 2, 2, 2],
                             "linear_attention": true, "num_labels": 10})");
}

/// Hugging Face's: its last block's windows are shifted.
inline Model small_hf_swin() {
  return small_of_config("small-hf-swin",
                         R"({"model_type": "swin", "image_size": 32, "embed_dim": 16,
                             "depths": [2], "num_heads": [2], "window_size": 4,
                             "num_labels": 10})");
}

inline StepOptions small_qlora(BaseWeights base) {
  StepOptions options;
  options.tuning = {.kind = Tuning::Kind::Lora, .rank = 2, .targets = {"all"}};
  options.base = base;
  return options;
}

inline std::vector<SmallStep> small_steps_with_formulas() {
  StepOptions short_text;
  short_text.sequence = 12;
  // Where fused attention takes a learned bias and a mask as one tensor.
  StepOptions newest, padded = short_text;
  newest.framework = padded.framework = "transformers-5";
  padded.padded = true;
  return {{small_mixtral(), {}},     {small_qwen_moe(), {}},
          {small_t5(), short_text},  {small_t5("small-padded-t5"), padded},
          {small_hf_swin(), newest}, {small_pvt(), {}},
          {small_pvt_v2(), {}}};
}

}  // namespace tidemark
