// How a replay fills a tensor that is there before the step, where its numbers mean something.
// Without a fill: random numbers, below what they index where they are whole.
#pragma once

#include <cstdint>
#include <variant>

#include "traces/rotary.h"
#include "traces/tensor.h"

namespace tidemark {

namespace fill {

/// Ids of words, and labels that are words: real text fills them.
struct Words {
  bool operator==(const Words&) const = default;
};

/// Images [batch, channels, height, width], and the classes of images: labelled ones fill them.
struct Pixels {
  bool operator==(const Pixels&) const = default;
};
struct ImageClasses {
  bool operator==(const ImageClasses&) const = default;
};

/// Counts along the last axis.
struct Positions {
  std::int64_t first = 0;
  bool operator==(const Positions&) const = default;
};

/// Added to scores [..., tokens, keys], of which the last is that of the last token: a token sees
/// itself and those before it.
struct CausalMask {
  std::int64_t window = 0;  ///< tokens that it sees; 0 = all
  bool operator==(const CausalMask&) const = default;
};

/// Added to scores: no token is padding.
struct PaddingMask {
  bool operator==(const PaddingMask&) const = default;
};

/// The same number everywhere.
struct Constant {
  double value = 0;
  bool operator==(const Constant&) const = default;
};

/// Added to scores [windows, 1, tokens, tokens]: a shifted window (Swin) does not see over the seam
/// of the rolled image.
struct SeamMask {
  std::int64_t shift = 1;
  bool operator==(const SeamMask&) const = default;
};

/// For each query and key of a square window the row of the table of (2w − 1)² differences.
struct WindowDifferences {
  bool operator==(const WindowDifferences&) const = default;
};

/// [q side, k side]: the row of the table of differences along one axis.
struct AxisDifferences {
  bool operator==(const AxisDifferences&) const = default;
};

/// For each query and key the bucket of their distance (T5, arXiv 1910.10683, section 2.1): near
/// ones have one each, farther ones share them by the logarithm, from `farthest` on all the last.
/// Or as a line [1, 2n]: the bucket of each distance, from a key n before its query on.
struct RelativeBuckets {
  std::int64_t buckets = 32, farthest = 128;
  bool looks_ahead = false;  ///< half of them are for keys behind the query
  bool operator==(const RelativeBuckets&) const = default;
};

inline bool is_line_of_buckets(const Shape& shape) {
  return shape.rank() == 2 && shape[0] == 1 && shape[1] % 2 == 0;
}

enum class Wave : std::uint8_t {
  Cosine,
  Sine,
  Pairs,  ///< both, beside each other
};

inline constexpr std::array waves = {Named{Wave::Cosine, std::string_view("cosine")},
                                     Named{Wave::Sine, std::string_view("sine")},
                                     Named{Wave::Pairs, std::string_view("pairs")}};
static_assert(is_in_order(waves));

/// Which columns of a table of one wave are a pair's.
enum class WaveColumns : std::uint8_t {
  Halves,      ///< one in each half
  Neighbours,  ///< two beside each other
  Once,        ///< one
};

inline constexpr std::array wave_columns = {
    Named{WaveColumns::Halves, std::string_view("halves")},
    Named{WaveColumns::Neighbours, std::string_view("neighbours")},
    Named{WaveColumns::Once, std::string_view("once")}};
static_assert(is_in_order(wave_columns));

/// [tokens, columns]: of each token's angle of each pair.
struct RotaryTable {
  Wave wave = Wave::Cosine;
  Rotary rotary = {};
  WaveColumns columns = WaveColumns::Halves;
  bool operator==(const RotaryTable&) const = default;
};

}  // namespace fill

using InputFill =
    std::variant<fill::Words, fill::Pixels, fill::ImageClasses, fill::Positions, fill::CausalMask,
                 fill::PaddingMask, fill::SeamMask, fill::WindowDifferences, fill::AxisDifferences,
                 fill::RotaryTable, fill::Constant, fill::RelativeBuckets>;

/// By the fill's index().
inline constexpr std::array<std::string_view, std::variant_size_v<InputFill>> fill_names = {
    "words",        "pixels",          "image_classes",      "positions",        "causal_mask",
    "padding_mask", "seam_mask",       "window_differences", "axis_differences", "rotary_table",
    "constant",     "relative_buckets"};

}  // namespace tidemark
