// nemotron_h: Nemotron-H, Nemotron Nano 2 and Nemotron 3, hybrids of state-space layers, attention
// without positions, and MLPs or experts that square what ReLU leaves.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/quoted.h"
#include "traces/models/config_decoder.h"

namespace tidemark::config {
namespace {

// Of initial values, of generation and of what follows from other keys.
constexpr auto of_no_step = std::to_array<std::string_view>(
    {"auto_map", "expand", "mamba_ssm_cache_dtype", "moe_shared_expert_overlap",
     "num_logits_to_keep", "rescale_prenorm_residual", "rope_theta", "routed_scaling_factor",
     "time_step_floor", "time_step_limit", "time_step_max", "time_step_min"});

struct MixerName {
  Mixer mixer;
  char letter;
  std::array<std::string_view, 2> names;  ///< in lists, newer files' first
};

constexpr std::array mixer_names = {
    MixerName{Mixer::StateSpace, 'M', {"linear_attention", "mamba"}},
    MixerName{Mixer::Attention, '*', {"full_attention", "attention"}},
    MixerName{Mixer::Mlp, '-', {"mlp", "mlp"}}, MixerName{Mixer::Experts, 'E', {"moe", "moe"}}};

}  // namespace

std::vector<Mixer> mixers_of_letters(std::string_view letters, const JsonView& place) {
  std::vector<Mixer> mixers;
  for (const char letter : letters) {
    const auto* row = std::ranges::find(mixer_names, letter, &MixerName::letter);
    if (row == mixer_names.end())
      place.fail(fmt::format(
          "'{}' is no block that is modelled (known: M state space, * attention, - MLP, E experts)",
          printable(std::string_view(&letter, 1))));
    mixers.push_back(row->mixer);
  }
  return mixers;
}

bool has_experts(const std::vector<Mixer>& mixers) {
  return std::ranges::find(mixers, Mixer::Experts) != mixers.end();
}

namespace {

std::vector<Mixer> mixers_of_pattern(const JsonView& pattern) {
  return mixers_of_letters(pattern.text(), pattern);
}

std::vector<Mixer> mixers_of_list(const JsonView& list) {
  std::vector<Mixer> mixers;
  for (const JsonView block : list.items()) {
    const std::string_view name = block.text();
    const auto* row = std::ranges::find_if(mixer_names, [&](const MixerName& known) {
      return std::ranges::find(known.names, name) != known.names.end();
    });
    if (row == mixer_names.end())
      block.fail(fmt::format("{} is no block that is modelled (known: mamba, attention, mlp, moe)",
                             quoted(name)));
    mixers.push_back(row->mixer);
  }
  return mixers;
}

std::vector<Mixer> mixers_of(Fields& root) {
  std::vector<Mixer> mixers;
  std::string_view key = "layers_block_type";
  const auto list = root.find(key), pattern = root.find("hybrid_override_pattern");
  if (list) {
    mixers = mixers_of_list(*list);
  } else if (pattern) {
    key = "hybrid_override_pattern";
    mixers = mixers_of_pattern(*pattern);
  } else {
    root.json().fail(
        "need \"hybrid_override_pattern\" or \"layers_block_type\", which say what each block is");
  }
  const auto blocks = static_cast<std::int64_t>(mixers.size());
  if (blocks == 0 || blocks > most_blocks)
    fail_at(root, key, fmt::format("{} blocks; need 1 to {}", blocks, most_blocks));
  const std::int64_t stated = count(root, "num_hidden_layers", blocks, most_blocks);
  if (stated != blocks)
    fail_at(root, "num_hidden_layers",
            fmt::format("{} layers, but {} names {}; use as many", stated, key, blocks));
  return mixers;
}

// Its class in transformers leaves these blocks out of what it trains. Megatron-Bridge repeats one
// for all tokens (hybrid_provider.py), in the precision's dtype (keep_mtp_spec_in_bf16).
void read_further_tokens(Fields& root, DecoderConfig& config) {
  config.further_tokens = root.integer_or("num_nextn_predict_layers", 0, 0, most_further_tokens);
  const auto list = root.find("mtp_layers_block_type");
  const auto pattern = root.find("mtp_hybrid_override_pattern");
  if (config.further_tokens == 0) return;
  config.repeats_further = config.further_are_plain = true;
  config.further_mixers = list      ? mixers_of_list(*list)
                          : pattern ? mixers_of_pattern(*pattern)
                                    : std::vector{Mixer::Attention, Mixer::Experts};
}

StateSpaceConfig state_space_of(Fields& root) {
  StateSpaceConfig config{.heads = count(root, "mamba_num_heads", 128, most_heads),
                          .head_width = count(root, "mamba_head_dim", 64, widest),
                          .groups = count(root, "n_groups", 8, most_heads),
                          .state = count(root, "ssm_state_size", 128, widest),
                          .kernel = count(root, "conv_kernel", 4, 4),
                          .chunk = count(root, "chunk_size", 128, most_positions)};
  require_divides(root, "n_groups", config.groups, "mamba_num_heads", config.heads);
  if (config.kernel < 2)  // causal_conv1d has kernels of two to four tokens
    fail_at(root, "conv_kernel", "need 2 to 4 tokens");
  one_of(root, "mamba_hidden_act", {"silu", "swish"});
  for (const std::string_view key : {"use_bias", "mamba_proj_bias"})
    refuse(root, key, "biases of a state-space layer's products; use false");
  if (!root.boolean_or("use_conv_bias", true))
    fail_at(root, "use_conv_bias", "convolutions without a bias are not modelled; use true");
  return config;
}

ExpertsConfig nemotron_experts(Fields& root) {
  ExpertsConfig config{.count = count(root, "n_routed_experts", 8, most_experts),
                       .per_token = count(root, "num_experts_per_tok", 2, most_experts),
                       .width = count(root, "moe_intermediate_size", 7688, widest),
                       .renormalizes = root.boolean_or("norm_topk_prob", true),
                       .gates_shared = false,
                       .is_gated = false,
                       .router = RouterForm::SigmoidOfGroups,
                       .groups = count(root, "n_group", 1, most_experts),
                       .best_groups = count(root, "topk_group", 1, most_experts)};
  if (root.find("moe_latent_size")) config.latent = count(root, "moe_latent_size", 1, widest);
  config.shared_width = count(root, "moe_shared_expert_intermediate_size", 7688, widest);
  if (count(root, "n_shared_experts", 1, most_experts) != 1)
    fail_at(root, "n_shared_experts", "one shared expert is modelled, of any width; use 1");
  require_per_token(root, config);
  require_groups(root, config);
  return config;
}

}  // namespace

ModelConfig read_nemotron_h(Fields& root) {
  DecoderConfig config{.family = "nemotron-h", .mixers = mixers_of(root)};
  config.depth = static_cast<std::int64_t>(config.mixers.size());
  config.width = count(root, "hidden_size", 4096, widest);
  config.heads = count(root, "num_attention_heads", 32, most_heads);
  config.key_heads = count(root, "num_key_value_heads", 8, most_heads);
  require_divides(root, "num_key_value_heads", config.key_heads, "num_attention_heads",
                  config.heads);
  const std::string_view of_head = root.find("head_dim") ? "head_dim" : "attention_head_dim";
  config.head_width = count(root, of_head, 128, widest);
  config.mlp = count(root, "intermediate_size", 21504, widest);
  config.mlp_form = MlpForm::Plain;
  config.mlp_bias = root.boolean_or("mlp_bias", false);
  config.activation = activation_form(root, "mlp_hidden_act", ActivationForm::SquaredRelu);
  config.vocabulary = count(root, "vocab_size", 131072, most_words);
  config.positions = count(root, "max_position_embeddings", 4096, most_positions);
  config.has_positions = false;
  config.epsilon = epsilon(root, "layer_norm_epsilon", 1e-5);
  config.attention_dropout = probability(root, "attention_dropout", 0);
  config.tied_head = root.boolean_or("tie_word_embeddings", false);
  config.own_attention = true;
  config.state_space = state_space_of(root);
  read_further_tokens(root, config);
  if (has_experts(config.mixers) || has_experts(config.further_mixers)) {
    config.experts = nemotron_experts(root);
    if (config.mlp_bias) fail_at(root, "mlp_bias", "biases of experts are not modelled; use false");
  }
  refuse(root, "attention_bias", "biases of attention; use false");
  refuse(root, "sliding_window", "windows of attention; remove it");
  refuse(root, "residual_in_fp32", "residuals in fp32; use false");
  if (probability(root, "hidden_dropout", 0) != 0)
    fail_at(root, "hidden_dropout", "dropout behind branches is not modelled; use 0");
  if (!root.boolean_or("use_mamba_kernels", true))
    fail_at(root, "use_mamba_kernels",
            "scans without mamba_ssm's kernels are not modelled; use true");
  for (const std::string_view key : of_no_step) root.find(key);
  return config;
}

}  // namespace tidemark::config
