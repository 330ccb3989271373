// llama, mistral, qwen2 and qwen3, which differ from each other in fields only.
#include "traces/models/config_decoder.h"

namespace tidemark::config {
ModelConfig read_llama(Fields& root) {
  DecoderConfig config = decoder(root, {.has_bias_fields = true});
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  return config;
}

ModelConfig read_mistral(Fields& root) {
  DecoderConfig config =
      decoder(root, {.usual = {.mlp = 14336, .key_heads = 8, .positions = 131072},
                     .key_heads_default_to_heads = false});
  const auto window = root.member("sliding_window");
  const bool none = window && window->kind() == JsonKind::Null;
  config.sliding_window = none ? 0 : count(root, "sliding_window", 4096, most_positions);
  config.own_loss = true;
  return config;
}

// q, k and v have a bias that no field of the file mentions.
ModelConfig read_qwen2(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.mlp = 22016,
                                                  .key_heads = 32,
                                                  .vocabulary = 151936,
                                                  .positions = 32768,
                                                  .qkv_bias = true},
                                        .key_heads_default_to_heads = false});
  config.sliding_window = switched_window(root);
  return config;
}

ModelConfig read_qwen3(Fields& root) {
  DecoderConfig config = decoder(root, {.usual = {.mlp = 22016,
                                                  .key_heads = 32,
                                                  .head_width = 128,
                                                  .vocabulary = 151936,
                                                  .positions = 32768,
                                                  .head_norm = HeadNorm::PerHead},
                                        .key_heads_default_to_heads = false,
                                        .has_bias_fields = true,
                                        .head_width_is_free = true});
  config.sliding_window = switched_window(root);
  return config;
}

}  // namespace tidemark::config
