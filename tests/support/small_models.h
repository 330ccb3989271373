// One small network per family, with every feature of the large ones, that trains in milliseconds.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "traces/models/config_reader.h"

namespace tidemark {

inline Model small_model(std::string name, ModelConfig config) {
  return {.name = std::move(name),
          .family = std::string(family_of(config)),
          .title = "",
          .source = "",
          .config = std::move(config)};
}

inline Model small_vit(std::int64_t depth = 3) {
  return small_model("small-vit", VitConfig{.image = 16,
                                            .patch = 4,
                                            .width = 32,
                                            .depth = depth,
                                            .heads = 2,
                                            .mlp = 64,
                                            .classes = 10});
}

inline Model small_swin(std::vector<std::int64_t> depths = {2, 2}) {
  return small_model("small-swin", SwinConfig{.image = 32,
                                              .patch = 2,
                                              .width = 16,
                                              .depths = std::move(depths),
                                              .heads = {2, 4},
                                              .window = 4,
                                              .classes = 10,
                                              .drop_path = 0});
}

inline Model small_mvit(std::vector<std::int64_t> depths = {1, 3}) {
  return small_model("small-mvit", MvitConfig{.image = 32,
                                              .width = 16,
                                              .heads = 1,
                                              .depths = std::move(depths),
                                              .key_stride = 2,
                                              .classes = 10,
                                              .drop_path = 0});
}

inline Model small_bert(std::int64_t depth = 2) {
  return small_model(
      "small-bert",
      BertConfig{
          .width = 32, .depth = depth, .heads = 2, .mlp = 64, .vocabulary = 61, .positions = 16});
}

inline Model small_roberta(std::int64_t depth = 3) {
  return small_model("small-roberta", BertConfig{.width = 32,
                                                 .depth = depth,
                                                 .heads = 4,
                                                 .mlp = 64,
                                                 .vocabulary = 61,
                                                 .positions = 18,
                                                 .token_types = 1,
                                                 .first_position = 2});
}

inline Model small_gpt2(std::int64_t depth = 2) {
  return small_model(
      "small-gpt2",
      Gpt2Config{
          .width = 32, .depth = depth, .heads = 2, .mlp = 64, .vocabulary = 61, .positions = 16});
}

inline Model small_llama(std::int64_t depth = 3) {
  return small_model("small-llama", DecoderConfig{.width = 32,
                                                  .depth = depth,
                                                  .heads = 4,
                                                  .mlp = 48,
                                                  .key_heads = 2,
                                                  .head_width = 8,
                                                  .vocabulary = 61,
                                                  .positions = 16});
}

// `own` are the members of its config.json beside the sizes that all of these have.
inline Model small_decoder(std::string name, std::string_view own, std::int64_t depth) {
  const std::string config =
      fmt::format(R"({{{}, "num_hidden_layers": {}, "hidden_size": 32, "num_attention_heads": 4,
                      "vocab_size": 61, "max_position_embeddings": 16}})",
                  own, depth);
  return small_model(std::move(name), read_model_config(config, "small").config);
}

// Gemma 2 and 3 in one: two norms a branch, norms of q and k, caps, windows in every other block.
inline Model small_gemma(std::int64_t depth = 3) {
  return small_decoder("small-gemma",
                       R"("model_type": "gemma3_text", "num_key_value_heads": 2, "head_dim": 8,
                           "query_pre_attn_scalar": 16, "intermediate_size": 48,
                           "sliding_window": 6, "sliding_window_pattern": 2,
                           "attn_logit_softcapping": 8, "final_logit_softcapping": 4,
                           "rope_theta": 10000, "rope_local_base_freq": 100)",
                       depth);
}

inline Model small_neox(std::int64_t depth = 3) {
  return small_decoder("small-neox",
                       R"("model_type": "gpt_neox", "intermediate_size": 64, "rotary_pct": 0.5)",
                       depth);
}

/// GPT of Megatron-LM with eight experts in each block, two for each token.
inline Model small_mixture(MlpForm form = MlpForm::GatedPacked, std::int64_t depth = 2) {
  const bool is_gated = form != MlpForm::Plain;
  return small_model(
      "small-mixture",
      DecoderConfig{.family = "megatron-gpt",
                    .width = 32,
                    .depth = depth,
                    .heads = 4,
                    .mlp = 64,
                    .key_heads = 4,
                    .head_width = 8,
                    .vocabulary = 61,
                    .positions = 16,
                    .mlp_form = form,
                    .activation = is_gated ? ActivationForm::Silu : ActivationForm::Gelu,
                    .experts = {.count = 8, .per_token = 2, .width = 48}});
}

/// "vit" of "small-vit", for the names of tests.
inline std::string short_name(const Model& model) {
  return model.name.substr(std::string_view("small-").size());
}

inline std::vector<Model> small_models() {
  return {small_vit(),  small_swin(),  small_mvit(),  small_bert(), small_roberta(),
          small_gpt2(), small_llama(), small_gemma(), small_neox()};
}

}  // namespace tidemark
