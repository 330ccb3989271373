// Decoders with LayerNorms: gpt_neox, phi, stablelm, opt and starcoder2.
#include <cmath>

#include "traces/models/config_decoder.h"

namespace tidemark::config {

// Pythia is one of these. q, k and v of a head lie side by side in one product.
ModelConfig read_gpt_neox(Fields& root) {
  const DecoderConfig usual{.family = "gpt-neox",
                            .width = 6144,
                            .depth = 44,
                            .heads = 64,
                            .mlp = 24576,
                            .vocabulary = 50432,
                            .epsilon = 1e-5,
                            .qkv_bias = true,
                            .mlp_bias = true,
                            .norm = NormForm::Layer,
                            .mlp_form = MlpForm::Plain,
                            .activation = ActivationForm::Gelu,
                            .packed_qkv = true,
                            .unpacking = Unpacking::ByHead};
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .has_key_heads = false,
                                        .has_bias_fields = true,
                                        .rotary_share = root.number_or("rotary_pct", 0.25, 0, 1),
                                        .epsilon_key = "layer_norm_eps"});
  if (root.find("rotary_emb_base"))
    config.rotary.theta = root.number_or("rotary_emb_base", 10000, 1, 1e12);
  config.embedding_dropout = config.residual_dropout = probability(root, "hidden_dropout", 0);
  config.classifier_dropout = optional_probability(root, {"classifier_dropout"});
  config.block =
      root.boolean_or("use_parallel_residual", true) ? BlockForm::Parallel : BlockForm::PreNorm;
  return config;
}

ModelConfig read_phi(Fields& root) {
  const DecoderConfig usual{.family = "phi",
                            .width = 2048,
                            .depth = 24,
                            .heads = 32,
                            .mlp = 8192,
                            .vocabulary = 51200,
                            .epsilon = 1e-5,
                            .qkv_bias = true,
                            .out_bias = true,
                            .mlp_bias = true,
                            .head_bias = true,
                            .norm = NormForm::Layer,
                            .block = BlockForm::ParallelOneNorm,
                            .mlp_form = MlpForm::Plain,
                            .activation = ActivationForm::GeluComposed};
  DecoderConfig config =
      decoder(root, {.usual = usual, .rotary_share = 0.5, .epsilon_key = "layer_norm_eps"});
  config.embedding_dropout = probability(root, "embd_pdrop", 0);
  config.residual_dropout = probability(root, "resid_pdrop", 0);
  if (root.boolean_or("qk_layernorm", false)) config.head_norm = HeadNorm::LayerPerHead;
  return config;
}

ModelConfig read_stablelm(Fields& root) {
  const DecoderConfig usual{.family = "stablelm",
                            .width = 2560,
                            .heads = 32,
                            .mlp = 6912,
                            .vocabulary = 50304,
                            .positions = 4096,
                            .epsilon = 1e-5,
                            .drops_attention_output = false,
                            .norm = NormForm::Layer,
                            .own_attention = true,
                            .names = BlockNames::Attention};
  DecoderConfig config =
      decoder(root, {.usual = usual, .rotary_share = 0.25, .epsilon_key = "layer_norm_eps"});
  config.qkv_bias = root.boolean_or("use_qkv_bias", false);
  config.residual_dropout = probability(root, "hidden_dropout", 0);
  if (!config.classifier_dropout) config.classifier_dropout = config.residual_dropout;
  if (root.boolean_or("use_parallel_residual", false)) config.block = BlockForm::ParallelOneNorm;
  if (root.boolean_or("qk_layernorm", false)) config.head_norm = HeadNorm::LayerOfEachHead;
  return config;
}

// The 350M model norms after each sum and has a narrower table of words.
ModelConfig read_opt(Fields& root) {
  const DecoderConfig usual{.family = "opt",
                            .width = 768,
                            .depth = 12,
                            .heads = 12,
                            .mlp = 3072,
                            .vocabulary = 50272,
                            .epsilon = 1e-5,
                            .norm = NormForm::Layer,
                            .mlp_form = MlpForm::Plain,
                            .activation = ActivationForm::Relu,
                            .learned_positions = true,
                            .first_position = 2};
  DecoderConfig config =
      decoder(root, {.usual = usual, .tied = true, .activation_key = "activation_function"});
  config.epsilon = usual.epsilon;  // the file does not say it
  config.mlp = count(root, "ffn_dim", usual.mlp, widest);
  config.residual_dropout = probability(root, "dropout", 0.1);
  config.mlp_in_block = true;
  const bool bias = root.boolean_or("enable_bias", true);
  config.qkv_bias = config.out_bias = config.mlp_bias = bias;
  config.block =
      root.boolean_or("do_layer_norm_before", true) ? BlockForm::PreNorm : BlockForm::PostNorm;
  const std::int64_t words = count(root, "word_embed_proj_dim", config.width, widest);
  if (words != config.width) config.embedding_width = words;
  config.query_factor = 1 / std::sqrt(static_cast<double>(config.head_width));
  config.score_factor = 1;
  refuse(root, "_remove_final_layer_norm", "a last block without a norm after it; remove it");
  if (!root.boolean_or("layer_norm_elementwise_affine", true))
    fail_at(root, "layer_norm_elementwise_affine", "norms without weights; use true");
  return config;
}

ModelConfig read_starcoder2(Fields& root) {
  const DecoderConfig usual{.family = "starcoder2",
                            .width = 3072,
                            .depth = 30,
                            .heads = 24,
                            .mlp = 12288,
                            .key_heads = 2,
                            .vocabulary = 49152,
                            .positions = 4096,
                            .epsilon = 1e-5,
                            .norm = NormForm::Layer,
                            .mlp_form = MlpForm::Plain,
                            .activation = ActivationForm::GeluTanh,
                            .drops_inside = true};
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .key_heads_default_to_heads = false,
                                        .tied = true,
                                        .epsilon_key = "norm_epsilon"});
  config.qkv_bias = config.out_bias = config.mlp_bias = root.boolean_or("use_bias", true);
  config.embedding_dropout = probability(root, "embedding_dropout", 0);
  config.residual_dropout = probability(root, "residual_dropout", 0);
  config.sliding_window = optional_window(root);
  return config;
}

}  // namespace tidemark::config
