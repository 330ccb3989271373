// Rotary positions (arXiv 2104.09864): how fast the pairs of a head turn from token to token, and
// what stretches the turns over more tokens than a model was first trained with.
#pragma once

#include <cstdint>

#include "base/names.h"

namespace tidemark {

/// The names are those of `rope_type` in config.json.
enum class RotaryScaling : std::uint8_t { None, Linear, Dynamic, Yarn, Llama3 };

inline constexpr std::array rotary_scalings = {
    Named{RotaryScaling::None, std::string_view("default")},
    Named{RotaryScaling::Linear, std::string_view("linear")},
    Named{RotaryScaling::Dynamic, std::string_view("dynamic")},
    Named{RotaryScaling::Yarn, std::string_view("yarn")},
    Named{RotaryScaling::Llama3, std::string_view("llama3")}};
static_assert(is_in_order(rotary_scalings));

struct Rotary {
  RotaryScaling scaling = RotaryScaling::None;
  double theta = 10000;  ///< pair i of d/2 turns by theta^(−2i/d) per token
  double factor = 1;     ///< of the stretch
  /// Pairs that turn less than `low` times within the original positions are stretched whole, those
  /// that turn more than `high` times not at all (yarn: beta_slow and beta_fast).
  double low = 1, high = 4;
  double attention_factor = 1;          ///< on the tables themselves (yarn)
  std::int64_t original_positions = 0;  ///< tokens of the training before

  bool operator==(const Rotary&) const = default;
};

}  // namespace tidemark
