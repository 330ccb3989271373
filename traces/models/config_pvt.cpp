// pvt and pvt_v2: a list with a number per stage for each size.
#include <fmt/format.h>

#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

using Numbers = std::vector<std::int64_t>;

/// What the two versions call differently, and their classes' defaults.
struct Names {
  std::string_view kernels, strides, reductions;
  Numbers widths, usual_kernels, usual_strides;
};

// Each list may be longer than the stages, of which num_encoder_blocks says how many there are.
Numbers numbers(Fields& root, std::string_view key, const Numbers& usual, std::int64_t stages,
                std::int64_t most) {
  Numbers values = per_stage(root, key, usual, most);
  if (std::ssize(values) < stages)
    fail_at(root, key,
            fmt::format("{} entries for {} stages; give one per stage", values.size(), stages));
  values.resize(static_cast<std::size_t>(stages));
  return values;
}

std::vector<double> ratios(Fields& root, std::int64_t stages) {
  std::vector<double> values = {8, 8, 4, 4};
  if (const auto list = root.find("mlp_ratios")) {
    values.clear();
    for (const JsonView item : list->items()) values.push_back(item.number(0, 1024));
  }
  if (std::ssize(values) < stages)
    fail_at(root, "mlp_ratios",
            fmt::format("{} entries for {} stages; give one per stage", values.size(), stages));
  return values;
}

PvtConfig pyramid(Fields& root, const Names& names) {
  PvtConfig config;
  config.image = count(root, "image_size", config.image, largest_image);
  config.channels = count(root, "num_channels", config.channels, 4096);
  config.classes = classes(root);
  config.qkv_bias = root.boolean_or("qkv_bias", true);
  config.epsilon = epsilon(root, "layer_norm_eps", config.epsilon);
  config.dropout = probability(root, "hidden_dropout_prob", 0);
  config.attention_dropout = probability(root, "attention_probs_dropout_prob", 0);
  config.drop_path = probability(root, "drop_path_rate", 0);
  config.activation = activation_form(root, "hidden_act", config.activation);
  const std::int64_t stages = count(root, "num_encoder_blocks", 4, most_stages);
  const Numbers widths = numbers(root, "hidden_sizes", names.widths, stages, widest);
  const Numbers depths = numbers(root, "depths", {2, 2, 2, 2}, stages, most_blocks);
  const Numbers heads = numbers(root, "num_attention_heads", {1, 2, 5, 8}, stages, most_heads);
  const Numbers kernels = numbers(root, names.kernels, names.usual_kernels, stages, 256);
  const Numbers strides = numbers(root, names.strides, names.usual_strides, stages, 256);
  const Numbers reductions = numbers(root, names.reductions, {8, 4, 2, 1}, stages, 256);
  const std::vector<double> of_mlp = ratios(root, stages);
  for (std::size_t s = 0; s < widths.size(); ++s) {
    config.stages.push_back(
        {widths[s], depths[s], heads[s], of_mlp[s], kernels[s], strides[s], reductions[s]});
    require_divides(root, "num_attention_heads", heads[s], "the stage's width", widths[s]);
    if (static_cast<double>(widths[s]) * of_mlp[s] < 1)
      fail_at(root, "mlp_ratios", "a stage without hidden units; use 4");
  }
  return config;
}

}  // namespace

// Its class names kernels strides, and strides patch sizes.
ModelConfig read_pvt(Fields& root) {
  PvtConfig config = pyramid(root, {.kernels = "strides",
                                    .strides = "patch_sizes",
                                    .reductions = "sequence_reduction_ratios",
                                    .widths = {64, 128, 320, 512},
                                    .usual_kernels = {4, 2, 2, 2},
                                    .usual_strides = {4, 2, 2, 2}});
  if (config.stages.back().reduction != 1)
    fail_at(root, "sequence_reduction_ratios",
            "the last stage has a class token, which no grid holds; use 1 there");
  for (const PvtConfig::Stage& stage : config.stages)
    if (stage.kernel != stage.stride)
      fail_at(root, "strides", "strides and patch_sizes differ, so that positions do not fit");
  return config;
}

ModelConfig read_pvt_v2(Fields& root) {
  PvtConfig config = pyramid(root, {.kernels = "patch_sizes",
                                    .strides = "strides",
                                    .reductions = "sr_ratios",
                                    .widths = {32, 64, 160, 256},
                                    .usual_kernels = {7, 3, 3, 3},
                                    .usual_strides = {4, 2, 2, 2}});
  config.overlaps = true;
  config.pools_keys = root.boolean_or("linear_attention", false);
  return config;
}

}  // namespace tidemark::config
