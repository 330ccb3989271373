// clip_text_model, clip_vision_model and SigLIP's: the towers, each from its own config.
#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

ClipConfig tower(Fields& root, const ClipConfig& usual) {
  ClipConfig config = usual;
  config.width = count(root, "hidden_size", usual.width, widest);
  config.depth = count(root, "num_hidden_layers", usual.depth, most_blocks);
  config.heads = count(root, "num_attention_heads", usual.heads, most_heads);
  config.mlp = count(root, "intermediate_size", usual.mlp, widest);
  config.epsilon = epsilon(root, "layer_norm_eps", usual.epsilon);
  config.attention_dropout = probability(root, "attention_dropout", 0);
  config.activation = activation_form(
      root, "hidden_act", usual.is_sigmoid ? ActivationForm::GeluTanh : ActivationForm::QuickGelu);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  return config;
}

ClipConfig of_text(Fields& root, const ClipConfig& usual) {
  ClipConfig config = tower(root, usual);
  config.vocabulary = count(root, "vocab_size", usual.vocabulary, most_words);
  config.positions = count(root, "max_position_embeddings", usual.positions, most_positions);
  return config;
}

ClipConfig of_images(Fields& root, const ClipConfig& usual) {
  ClipConfig config = tower(root, usual);
  config.image = count(root, "image_size", usual.image, largest_image);
  config.patch = count(root, "patch_size", usual.patch, largest_image);
  config.channels = count(root, "num_channels", usual.channels, 4096);
  require_divides(root, "patch_size", config.patch, "image_size", config.image);
  return config;
}

constexpr ClipConfig sigmoid{.family = "siglip",
                             .is_sigmoid = true,
                             .width = 768,
                             .heads = 12,
                             .mlp = 3072,
                             .vocabulary = 32000,
                             .positions = 64,
                             .patch = 16,
                             .epsilon = 1e-6};

}  // namespace

ModelConfig read_clip_text(Fields& root) { return of_text(root, {}); }

ModelConfig read_clip_vision(Fields& root) {
  return of_images(root, {.sees = true, .width = 768, .heads = 12, .mlp = 3072});
}

ModelConfig read_siglip_text(Fields& root) {
  ClipConfig config = of_text(root, sigmoid);
  config.projection = count(root, "projection_size", config.width, widest);
  return config;
}

ModelConfig read_siglip_vision(Fields& root) {
  ClipConfig config = sigmoid;
  config.sees = true;
  if (!root.boolean_or("vision_use_head", true))
    fail_at(root, "vision_use_head", "a tower without its head is not modelled; use true");
  return of_images(root, config);
}

}  // namespace tidemark::config
