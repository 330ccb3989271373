// vit, beit, vit_mae, deit, dinov2 and swin: the fields and defaults of Hugging Face's
// configuration_*.py; their modelling code has separate q, k and v and scales the scores. mvit: a
// file of our own.
#include <fmt/format.h>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

VitConfig vision_transformer(Fields& root, std::int64_t patch = 16) {
  const VitConfig usual;
  VitConfig config{.image = count(root, "image_size", usual.image, largest_image),
                   .patch = count(root, "patch_size", patch, largest_image),
                   .channels = count(root, "num_channels", usual.channels, 4096),
                   .width = count(root, "hidden_size", usual.width, widest),
                   .depth = count(root, "num_hidden_layers", usual.depth, most_blocks),
                   .heads = count(root, "num_attention_heads", usual.heads, most_heads),
                   .mlp = count(root, "intermediate_size", usual.mlp, widest),
                   .classes = classes(root),
                   .qkv_bias = root.boolean_or("qkv_bias", true),
                   .epsilon = epsilon(root, "layer_norm_eps", 1e-12),
                   .dropout = probability(root, "hidden_dropout_prob", 0),
                   .attention_dropout = probability(root, "attention_probs_dropout_prob", 0),
                   .drops_hidden = false,
                   .packed_qkv = false,
                   .scales_query = false};
  config.activation = activation_form(root, "hidden_act", config.activation);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  require_divides(root, "patch_size", config.patch, "image_size", config.image);
  return config;
}

// The width of SwiGLU's halves: two thirds of the other MLP's, in steps of 8 (arXiv 2304.07193's
// code, Dinov2SwiGLUFFN).
std::int64_t gated_width(std::int64_t plain) { return (2 * plain / 3 + 7) / 8 * 8; }

void require_hidden_units(Fields& root, std::int64_t width, double mlp_ratio) {
  const double hidden = static_cast<double>(width) * mlp_ratio;
  if (hidden >= 1) return;
  fail_at(root, "mlp_ratio",
          fmt::format("mlp_ratio = {} leaves no hidden units of {}; use 4", mlp_ratio, width));
}

// `key` may repeat what the stages imply, but not contradict it.
void require_equal(Fields& root, std::string_view key, std::int64_t implied) {
  const std::int64_t stated = root.integer_or(key, implied, 0, largest_size);
  if (stated == implied) return;
  fail_at(root, key,
          fmt::format("{} = {} contradicts the stages, which make it {}; remove it", key, stated,
                      implied));
}

}  // namespace

std::vector<std::int64_t> per_stage(Fields& root, std::string_view key,
                                    std::vector<std::int64_t> fallback, std::int64_t most) {
  const auto list = root.find(key);
  if (!list) return fallback;
  std::vector<std::int64_t> values;
  for (const JsonView item : list->items()) {
    if (std::ssize(values) == most_stages)
      list->fail(fmt::format("more than {} stages; use fewer", most_stages));
    values.push_back(item.integer(1, most));
  }
  if (values.empty()) list->fail("no stages; give one number per stage");
  return values;
}

ModelConfig read_vit(Fields& root) { return vision_transformer(root); }

ModelConfig read_beit(Fields& root) {
  const VitConfig of = vision_transformer(root);
  BeitConfig config{.image = of.image,
                    .patch = of.patch,
                    .channels = of.channels,
                    .width = of.width,
                    .depth = of.depth,
                    .heads = of.heads,
                    .mlp = of.mlp,
                    .classes = of.classes,
                    .activation = of.activation,
                    .epsilon = of.epsilon,
                    .dropout = of.dropout,
                    .attention_dropout = of.attention_dropout};
  config.mask_token = root.boolean_or("use_mask_token", config.mask_token);
  config.absolute_positions =
      root.boolean_or("use_absolute_position_embeddings", config.absolute_positions);
  config.biases_blocks = root.boolean_or("use_relative_position_bias", config.biases_blocks);
  config.biases_together =
      root.boolean_or("use_shared_relative_position_bias", config.biases_together);
  config.layer_scale = root.number_or("layer_scale_init_value", 0.1, 0, 1e6) > 0;
  config.pools_patches = root.boolean_or("use_mean_pooling", config.pools_patches);
  config.drop_path = probability(root, "drop_path_rate", config.drop_path);
  return config;
}

ModelConfig read_vit_mae(Fields& root) {
  VitMaeConfig config{.encoder = vision_transformer(root), .decoder = {}};
  config.decoder = config.encoder;
  VitConfig& decoder = config.decoder;
  decoder.width = count(root, "decoder_hidden_size", 512, widest);
  decoder.depth = count(root, "decoder_num_hidden_layers", 8, most_blocks);
  decoder.heads = count(root, "decoder_num_attention_heads", 16, most_heads);
  decoder.mlp = count(root, "decoder_intermediate_size", 2048, widest);
  require_divides(root, "decoder_num_attention_heads", decoder.heads, "decoder_hidden_size",
                  decoder.width);
  config.mask_ratio = probability(root, "mask_ratio", config.mask_ratio);
  if (config.mask_ratio >= 1) fail_at(root, "mask_ratio", "no patch is left to read; use 0.75");
  config.norms_pixels = root.boolean_or("norm_pix_loss", config.norms_pixels);
  return config;
}

ModelConfig read_dinov2(Fields& root) {
  VitConfig config = vision_transformer(root, 14);
  config.epsilon = epsilon(root, "layer_norm_eps", 1e-6);
  const double ratio = root.number_or("mlp_ratio", 4, 0, 1024);
  config.mlp = static_cast<std::int64_t>(static_cast<double>(config.width) * ratio);
  require_hidden_units(root, config.width, ratio);
  config.gated_mlp = root.boolean_or("use_swiglu_ffn", false);
  if (config.gated_mlp) config.mlp = gated_width(config.mlp);
  config.layer_scale = config.pools_patches = config.softmax_in_fp32 = true;
  config.mask_token = root.boolean_or("use_mask_token", true);
  config.stretches_positions = true;
  config.drop_path = probability(root, "drop_path_rate", 0);
  return config;
}

// With the distillation token; the projections' biases can be left out, the others cannot.
ModelConfig read_deit(Fields& root) {
  VitConfig config = vision_transformer(root);
  config.prefix_tokens = 2;
  return config;
}

ModelConfig read_swin(Fields& root) {
  const SwinConfig usual;
  SwinConfig config{.image = count(root, "image_size", usual.image, largest_image),
                    .patch = count(root, "patch_size", usual.patch, largest_image),
                    .channels = count(root, "num_channels", usual.channels, 4096),
                    .width = count(root, "embed_dim", usual.width, widest),
                    .depths = per_stage(root, "depths", usual.depths, most_blocks),
                    .heads = per_stage(root, "num_heads", usual.heads, most_heads),
                    .window = count(root, "window_size", usual.window, largest_image),
                    .mlp_ratio = root.number_or("mlp_ratio", usual.mlp_ratio, 0, 1024),
                    .classes = classes(root),
                    .qkv_bias = root.boolean_or("qkv_bias", true),
                    .absolute_positions = root.boolean_or("use_absolute_embeddings", false),
                    .epsilon = epsilon(root, "layer_norm_eps", usual.epsilon),
                    .dropout = probability(root, "hidden_dropout_prob", 0),
                    .attention_dropout = probability(root, "attention_probs_dropout_prob", 0),
                    .drop_path = probability(root, "drop_path_rate", usual.drop_path),
                    .drops_hidden = false,
                    .mlp_drop_path = false,
                    .packed_qkv = false,
                    .scales_query = false,
                    .fused_shift = false,
                    .checkpoints_stages = true};
  config.activation = activation_form(root, "hidden_act", config.activation);
  if (config.heads.size() != config.depths.size())
    fail_at(root, "num_heads",
            fmt::format("{} entries but depths has {}; give one per stage", config.heads.size(),
                        config.depths.size()));
  for (std::size_t s = 0; s < config.heads.size(); ++s)
    require_divides(root, "num_heads", config.heads[s], "the stage's width", config.width << s);
  require_hidden_units(root, config.width, config.mlp_ratio);
  require_divides(root, "patch_size", config.patch, "image_size", config.image);
  require_equal(root, "num_layers", std::ssize(config.depths));
  require_equal(root, "hidden_size", config.width << (config.depths.size() - 1));
  return config;
}

ModelConfig read_mvit(Fields& root) {
  root.json().allow_only(
      {"model_type",   "image_size",      "num_channels",     "num_labels",       "id2label",
       "patch_kernel", "patch_stride",    "patch_padding",    "embed_dim",        "num_heads",
       "depths",       "pool_kernel",     "kv_stride",        "mlp_ratio",        "cls_embed_on",
       "use_abs_pos",  "rel_pos_spatial", "pool_every_query", "residual_pooling", "dim_mul_in_att",
       "separate_qkv", "layer_norm_eps",  "dropout_rate",     "drop_path_rate"});
  const MvitConfig usual;
  MvitConfig config{.image = count(root, "image_size", usual.image, largest_image),
                    .channels = count(root, "num_channels", usual.channels, 4096),
                    .stem_kernel = count(root, "patch_kernel", usual.stem_kernel, 256),
                    .stem_stride = count(root, "patch_stride", usual.stem_stride, 256),
                    .stem_padding = root.integer_or("patch_padding", usual.stem_padding, 0, 128),
                    .width = count(root, "embed_dim", usual.width, widest),
                    .heads = count(root, "num_heads", usual.heads, most_heads),
                    .depths = per_stage(root, "depths", usual.depths, most_blocks),
                    .pool_kernel = count(root, "pool_kernel", usual.pool_kernel, 255),
                    .key_stride = count(root, "kv_stride", usual.key_stride, 256),
                    .mlp_ratio = root.number_or("mlp_ratio", usual.mlp_ratio, 0, 1024),
                    .classes = classes(root),
                    .class_token = root.boolean_or("cls_embed_on", false),
                    .absolute_positions = root.boolean_or("use_abs_pos", false),
                    .relative_positions = root.boolean_or("rel_pos_spatial", true),
                    .pools_every_query = root.boolean_or("pool_every_query", true),
                    .residual_pooling = root.boolean_or("residual_pooling", true),
                    .widens_in_attention = root.boolean_or("dim_mul_in_att", true),
                    .packed_qkv = !root.boolean_or("separate_qkv", false),
                    .epsilon = epsilon(root, "layer_norm_eps", usual.epsilon),
                    .dropout = probability(root, "dropout_rate", 0),
                    .drop_path = probability(root, "drop_path_rate", usual.drop_path)};
  require_divides(root, "num_heads", config.heads, "embed_dim", config.width);
  require_hidden_units(root, config.width, config.mlp_ratio);
  if (config.pool_kernel % 2 == 0)
    fail_at(root, "pool_kernel", "an even kernel would shrink the grid; use 3");
  if (config.class_token && (config.relative_positions || config.residual_pooling))
    fail_at(root, "cls_embed_on",
            "a class token beside rel_pos_spatial or residual_pooling is not modelled; switch one "
            "of them off");
  return config;
}

}  // namespace tidemark::config
