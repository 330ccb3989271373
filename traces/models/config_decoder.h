// What the readers of decoders' config.json share: the fields that most have under one name.
#pragma once

#include "traces/models/config_fields.h"

namespace tidemark::config {

/// Tokens behind the next one that a model can predict.
inline constexpr std::int64_t most_further_tokens = 8;

/// Where the members of the family differ beside the defaults of their fields.
struct Kin {
  DecoderConfig usual = {};
  bool key_heads_default_to_heads = true;
  bool has_key_heads = true;        ///< num_key_value_heads
  bool has_bias_fields = false;     ///< attention_bias
  bool head_width_is_free = false;  ///< its default does not follow from the width
  bool tied = false;                ///< the head, by default
  /// The default of partial_rotary_factor; unset where all of a head turns.
  std::optional<double> rotary_share = {};
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view activation_key = "hidden_act";
};

/// All fields that `kin` has; what is not read here stays as in its `usual`.
DecoderConfig decoder(Fields& root, const Kin& kin);

/// "MEM*E-": a letter per block of one branch. Fails at `place`.
std::vector<Mixer> mixers_of_letters(std::string_view letters, const JsonView& place);
bool has_experts(const std::vector<Mixer>& mixers);

/// No token goes to more experts than there are.
void require_per_token(Fields& root, const ExpertsConfig& config,
                       std::string_view key = "num_experts_per_tok");
/// Groups are of as many experts each ("n_group"), and no more of them are picked ("topk_group").
void require_groups(Fields& root, const ExpertsConfig& config);

/// Unset, null and 0 are no window.
std::int64_t optional_window(Fields& root);

/// Of models whose code asks for one: null is refused.
std::int64_t required_window(Fields& root, std::int64_t usual);

/// Qwen's window, which is off unless it is switched on.
std::int64_t switched_window(Fields& root);

/// n, if every n-th of `depth` blocks sees everything: what `layer_types` say, else what `key`
/// does, else `usual`. Any other order is refused.
std::int64_t global_every(Fields& root, std::string_view key, std::int64_t usual,
                          std::int64_t depth);

/// n, if every n-th of `is_marked` is true and no other; where none is, one more than there are.
/// Fails at `place` in any other order of `what`.
std::int64_t every_nth(const std::vector<bool>& is_marked, std::string_view what,
                       const JsonView& place);

/// Leading elements of a head that turn: `share` of them, an even number.
std::int64_t rotary_part(Fields& root, std::string_view key, double share, std::int64_t head_width);

}  // namespace tidemark::config
