// falcon: 7B with one head of keys, 40B and 180B with groups, and without either.
#include "traces/models/config_decoder.h"

namespace tidemark::config {

ModelConfig read_falcon(Fields& root) {
  const bool is_grouped = root.boolean_or("new_decoder_architecture", false);
  const bool has_one_key = !is_grouped && root.boolean_or("multi_query", true);
  const bool is_parallel = root.boolean_or("parallel_attn", true);
  const DecoderConfig usual{.family = "falcon",
                            .width = 4544,
                            .heads = 71,
                            .vocabulary = 65024,
                            .epsilon = 1e-5,
                            .drops_attention_output = true,
                            .norm = NormForm::Layer,
                            .block = is_parallel ? BlockForm::ParallelOneNorm : BlockForm::PreNorm,
                            .mlp_form = MlpForm::Plain,
                            .activation = ActivationForm::Gelu,
                            .own_attention = true,
                            .broadcasts_keys = has_one_key,
                            .plain_scores = true,
                            .drops_sum = is_parallel,
                            .names = BlockNames::All,
                            .packed_qkv = true,
                            .unpacking = is_grouped    ? Unpacking::Grouped
                                         : has_one_key ? Unpacking::OneKeyHead
                                                       : Unpacking::SelectByHead};
  DecoderConfig config = decoder(root, {.usual = usual,
                                        .tied = true,
                                        .epsilon_key = "layer_norm_epsilon",
                                        .activation_key = "activation"});
  config.mlp = count(root, "ffn_hidden_size", 4 * config.width, 4 * widest);
  config.key_heads = has_one_key ? 1 : config.heads;
  if (is_grouped) config.key_heads = count(root, "num_kv_heads", config.heads, most_heads);
  require_divides(root, "num_kv_heads", config.key_heads, "num_attention_heads", config.heads);
  if (is_grouped && is_parallel && count(root, "num_ln_in_parallel_attn", 2, 2) == 2)
    config.block = BlockForm::Parallel;
  config.residual_dropout = probability(root, "hidden_dropout", 0);
  config.attention_dropout = 0;  // only in code for alibi
  if (!config.classifier_dropout) config.classifier_dropout = config.residual_dropout;
  if (!is_parallel && probability(root, "attention_dropout", 0) != config.residual_dropout)
    fail_at(root, "attention_dropout", "another dropout than hidden_dropout is not modelled");
  refuse(root, "alibi", "scores that fall with the distance; remove it");
  refuse(root, "bias", "biases that are added by kernels of their own; remove it");
  return config;
}

}  // namespace tidemark::config
