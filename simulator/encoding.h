// How a quantized tensor is coded: in how many bits, and which elements share a range.
#pragma once

#include <array>

#include "traces/tensor.h"

namespace tidemark {

/// Of a tensor whose codes are unsigned integers between the least and the largest element of their
/// group. A group is `group` indices along `axis`, over all other axes. Beside the codes, which end
/// with their last use, each group has its metadata, which stay from step to step.
struct Encoding {
  std::uint32_t group = 0;     ///< 0: all elements are one group
  std::uint8_t metadata = 16;  ///< bytes per group: fp32 range and minimum, which run from step to
                               ///< step, and the extremes of the tensor that comes next
  /// Coded by the range as it stood when the last step ended, so that codes need no pass before
  /// them; the extremes of this step move it for the next. A deviation from Mesa.
  bool delayed = false;
  std::uint8_t bits = 8;
  std::uint8_t axis = 0;

  bool operator==(const Encoding&) const = default;
};

inline constexpr std::array<std::int64_t, 3> code_bits = {2, 4, 8};

/// Number of groups of a tensor of this shape, which the encoding fits.
std::int64_t groups_of(const Encoding& encoding, const Shape& shape);

/// Of the codes alone; they are packed.
Bytes size_of_codes(const Encoding& encoding, const Shape& shape);
/// Of what the groups' codes are decoded by.
Bytes size_of_ranges(const Encoding& encoding, const Shape& shape);

/// May a kernel that notes extremes write the codes, too? Codes that share a byte need a pass of
/// their own.
constexpr bool is_coded_in_passing(const Encoding& encoding) {
  return encoding.delayed && encoding.bits == 8;
}

/// Mesa's groups (arXiv 2111.11124): heads where the tensor has them as its second of four axes;
/// else so many channels, if they divide the last axis, or all.
inline constexpr std::int64_t mesa_channels = 64;  // DeiT's head width, in the released policies
Encoding mesa_encoding(const Shape& shape, int bits = 8, std::int64_t channels = mesa_channels);

/// Why a tensor of this shape cannot be coded so, or "".
std::string misfit(const Encoding& encoding, const Shape& shape);

}  // namespace tidemark
