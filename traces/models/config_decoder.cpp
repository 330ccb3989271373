// Reads the fields that decoders share, with the defaults of each family's configuration_*.py.
#include "traces/models/config_decoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::config {
namespace {

// A head's width: stated, or what the width leaves to each head.
std::int64_t head_width(Fields& root, const DecoderConfig& config, const Kin& kin) {
  if (root.find("head_dim") || kin.head_width_is_free)
    return count(root, "head_dim", kin.usual.head_width, widest);
  require_divides(root, "num_attention_heads", config.heads, "hidden_size", config.width);
  return config.width / config.heads;
}

// In these files null means "as many as heads", while a missing field means the class's default.
std::int64_t key_heads(Fields& root, const DecoderConfig& config, const Kin& kin) {
  if (!kin.has_key_heads) return config.heads;
  const auto stated = root.member("num_key_value_heads");
  const bool as_heads = stated ? stated->kind() == JsonKind::Null : kin.key_heads_default_to_heads;
  const std::int64_t fallback = as_heads ? config.heads : kin.usual.key_heads;
  const std::int64_t heads = count(root, "num_key_value_heads", fallback, most_heads);
  require_divides(root, "num_key_value_heads", heads, "num_attention_heads", config.heads);
  return heads;
}

// transformers 5 writes the share of a head that turns beside the base of its angles.
double usual_share(Fields& root, std::string_view key, double usual) {
  const auto parameters = root.find("rope_parameters");
  const bool has_members = parameters && parameters->kind() == JsonKind::Object;
  return has_members ? parameters->number_or(key, usual, 0, 1) : usual;
}

void read_rotary(Fields& root, DecoderConfig& config, const Kin& kin) {
  config.rotary = rotary(root, config.positions, kin.usual.rotary.theta);
  constexpr std::string_view key = "partial_rotary_factor";
  const double share = usual_share(root, key, kin.rotary_share.value_or(1));
  if (kin.rotary_share)
    config.rotary_width = rotary_part(root, key, share, config.head_width);
  else if (root.number_or(key, share, 0, 1) != 1)
    fail_at(root, key, "rotating a part of each head is not modelled for this family; use 1");
  if (config.head_width % 2 != 0)
    fail_at(root, "head_dim",
            fmt::format("rotary positions need an even head width, not {}", config.head_width));
}

}  // namespace

std::int64_t optional_window(Fields& root) {
  return root.integer_or("sliding_window", 0, 0, most_positions);
}

std::int64_t required_window(Fields& root, std::int64_t usual) {
  const auto stated = root.member("sliding_window");
  if (stated && stated->kind() == JsonKind::Null)
    stated->fail("this family's code has no masks without a window; give its tokens");
  return count(root, "sliding_window", usual, most_positions);
}

std::int64_t switched_window(Fields& root) {
  const std::int64_t window = count(root, "sliding_window", 4096, most_positions);
  return root.boolean_or("use_sliding_window", false) ? window : 0;
}

std::int64_t every_nth(const std::vector<bool>& is_marked, std::string_view what,
                       const JsonView& place) {
  const auto first = std::ranges::find(is_marked, true);
  const std::int64_t every = first - is_marked.begin() + 1;
  for (std::int64_t i = 0; i < std::ssize(is_marked); ++i)
    if (is_marked[static_cast<std::size_t>(i)] != ((i + 1) % every == 0))
      place.fail(
          fmt::format("{} in every {}-th layer is modelled, other orders are not; layer {} differs",
                      what, every, i));
  return every;
}

std::int64_t global_every(Fields& root, std::string_view key, std::int64_t usual,
                          std::int64_t depth) {
  const auto types = root.find("layer_types");
  if (!types) return count(root, key, usual, most_blocks);
  root.find(key);  // what it says is in the types
  std::vector<bool> is_global;
  for (const JsonView type : types->items()) is_global.push_back(type.text() == "full_attention");
  if (std::ssize(is_global) != depth)
    types->fail(fmt::format("{} layer types for {} layers", is_global.size(), depth));
  return every_nth(is_global, "full attention", *types);
}

std::int64_t rotary_part(Fields& root, std::string_view key, double share,
                         std::int64_t head_width) {
  const double stated = root.number_or(key, share, 0, 1);
  const auto width = static_cast<std::int64_t>(static_cast<double>(head_width) * stated);
  if (width == head_width) return 0;
  if (width < 2 || width % 2 != 0)
    fail_at(root, key,
            fmt::format("{} of the {} elements of a head turn; use a share that leaves an even "
                        "number, 2 or more",
                        width, head_width));
  return width;
}

DecoderConfig decoder(Fields& root, const Kin& kin) {
  const DecoderConfig& usual = kin.usual;
  DecoderConfig config = usual;
  config.width = count(root, "hidden_size", usual.width, widest);
  config.depth = count(root, "num_hidden_layers", usual.depth, most_blocks);
  config.heads = count(root, "num_attention_heads", usual.heads, most_heads);
  config.mlp = count(root, "intermediate_size", usual.mlp, widest);
  config.vocabulary = count(root, "vocab_size", usual.vocabulary, most_words);
  config.positions = count(root, "max_position_embeddings", usual.positions, most_positions);
  config.epsilon = epsilon(root, kin.epsilon_key, usual.epsilon);
  config.attention_dropout = probability(root, "attention_dropout", usual.attention_dropout);
  config.activation = activation_form(root, kin.activation_key, usual.activation);
  config.tied_head = root.boolean_or("tie_word_embeddings", kin.tied);
  config.labels = classes(root);
  config.classifier_dropout = optional_probability(root, {"classifier_dropout", "hidden_dropout"});
  config.key_heads = key_heads(root, config, kin);
  config.head_width = head_width(root, config, kin);
  if (kin.has_bias_fields)
    config.qkv_bias = config.out_bias = root.boolean_or("attention_bias", usual.qkv_bias);
  if (!config.learned_positions) read_rotary(root, config, kin);
  return config;
}

}  // namespace tidemark::config
