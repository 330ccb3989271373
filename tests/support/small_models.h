// One small network per family, with every feature of the large ones, that trains in milliseconds.
#pragma once

#include <vector>

#include "traces/models/model_config.h"

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

// Gemma 2 and 3 in one: two norms a branch, norms of q and k, caps, windows in every other block.
inline Model small_gemma(std::int64_t depth = 3) {
  return small_model("small-gemma", DecoderConfig{.family = "gemma",
                                                  .width = 32,
                                                  .depth = depth,
                                                  .heads = 4,
                                                  .mlp = 48,
                                                  .key_heads = 2,
                                                  .head_width = 8,
                                                  .vocabulary = 61,
                                                  .positions = 16,
                                                  .sliding_window = 6,
                                                  .global_every = 2,
                                                  .norm = NormForm::RmsOnePlus,
                                                  .block = BlockForm::SandwichNorm,
                                                  .activation = ActivationForm::GeluTanh,
                                                  .head_norm = HeadNorm::PerHead,
                                                  .embedding_factor = 4,
                                                  .score_factor = 0.25,
                                                  .score_cap = 8,
                                                  .logit_cap = 4,
                                                  .local_rotary = Rotary{.theta = 100},
                                                  .tied_head = true});
}

inline Model small_neox(std::int64_t depth = 3) {
  return small_model("small-neox", DecoderConfig{.family = "gpt-neox",
                                                 .width = 32,
                                                 .depth = depth,
                                                 .heads = 4,
                                                 .mlp = 64,
                                                 .key_heads = 4,
                                                 .head_width = 8,
                                                 .vocabulary = 61,
                                                 .positions = 16,
                                                 .qkv_bias = true,
                                                 .out_bias = true,
                                                 .mlp_bias = true,
                                                 .norm = NormForm::Layer,
                                                 .block = BlockForm::Parallel,
                                                 .mlp_form = MlpForm::Plain,
                                                 .activation = ActivationForm::Gelu,
                                                 .packed_qkv = true,
                                                 .unpacking = Unpacking::ByHead,
                                                 .rotary_width = 4});
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
