// How a quantized tensor is coded: as what, in how many bits, and which elements share a range.
#pragma once

#include <array>

#include "base/names.h"
#include "traces/tensor.h"

namespace tidemark {

/// What a code is.
enum class CodeFormat : std::uint8_t {
  Integer,  ///< steps between the least and the largest element of its group (arXiv 2111.11124)
  Float8,   ///< a float of eight bits, beside the largest magnitude in its group (arXiv 2410.19313)
};
inline constexpr std::array code_formats = {Named{CodeFormat::Integer, std::string_view("integer")},
                                            Named{CodeFormat::Float8, to_string(DType::Float8)}};
static_assert(is_in_order(code_formats));
constexpr std::string_view to_string(CodeFormat format) {
  return code_formats[static_cast<std::size_t>(format)].name;
}

/// Of a tensor that is kept in codes, which end with their last use. What decodes a group is its
/// metadata.
/// Integers: a group is `group` indices along `axis`, over all other axes, and its metadata stay
/// from step to step. Floats: a group is `group` neighbours of the last axis, and its metadata lie
/// behind the codes and end with them.
struct Encoding {
  std::uint32_t group = 0;     ///< 0: all elements are one group
  std::uint8_t metadata = 16;  ///< bytes per group. Integers: fp32 range and minimum, which run
                               ///< from step to step, and the extremes of the tensor that comes
                               ///< next. Floats: 4, the largest magnitude in fp32
  /// Coded by the range as it stood when the last step ended, so that codes need no pass before
  /// them; the extremes of this step move it for the next. A deviation from Mesa.
  bool delayed = false;
  std::uint8_t bits = 8;
  std::uint8_t axis = 0;  ///< of integers
  CodeFormat format = CodeFormat::Integer;

  bool operator==(const Encoding&) const = default;
};

inline constexpr std::array<std::int64_t, 3> code_bits = {2, 4, 8};

/// Number of groups of a tensor of this shape, which the encoding fits.
std::int64_t groups_of(const Encoding& encoding, const Shape& shape);

/// Of the codes, which are packed, and of what ends with them.
Bytes size_of_codes(const Encoding& encoding, const Shape& shape);
/// Of what the groups' codes are decoded by where that stays from step to step.
Bytes size_of_ranges(const Encoding& encoding, const Shape& shape);

/// Are codes decoded by ranges that run from step to step?
constexpr bool has_ranges(const Encoding& encoding) {
  return encoding.format == CodeFormat::Integer;
}

/// Do kernels decode such codes while they load them? Others become values in memory first.
constexpr bool is_decoded_while_loading(const Encoding& encoding) {
  return encoding.format == CodeFormat::Integer;
}

/// May a kernel that notes extremes write the codes, too? Codes that share a byte need a pass of
/// their own.
constexpr bool is_coded_in_passing(const Encoding& encoding) {
  return encoding.delayed && encoding.bits == 8;
}

/// Mesa's groups (arXiv 2111.11124): heads where the tensor has them as its second of four axes;
/// else so many channels, if they divide the last axis, or all.
inline constexpr std::int64_t mesa_channels = 64;  // DeiT's head width, in the released policies
Encoding mesa_encoding(const Shape& shape, int bits = 8, std::int64_t channels = mesa_channels);

/// Floats whose groups are so many neighbours of a row if they divide it, else the row; shorter
/// rows are one group all together. COAT (arXiv 2410.19313, section 5) has 16 neighbours, for all
/// but products.
inline constexpr std::array<std::int64_t, 4> float8_groups = {16, 32, 64, 128};
Encoding float8_encoding(const Shape& shape, std::int64_t neighbours = float8_groups.front());
/// Floats of one group: COAT's for products.
Encoding float8_encoding_of_tensor();

/// Of a format, where nobody says more.
Encoding usual_encoding(CodeFormat format, const Shape& shape);

/// Why a tensor of this shape cannot be coded so, or "".
std::string misfit(const Encoding& encoding, const Shape& shape);

}  // namespace tidemark
