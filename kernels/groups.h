// Groups of a quantized tensor (Mesa, arXiv 2111.11124): what is known of each, and to which one an
// element belongs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/number_formats.h"

namespace tidemark {

/// Steps between the codes of so many bits.
TIDEMARK_ANYWHERE constexpr float code_levels(int bits) {
  return static_cast<float>((1 << bits) - 1);
}

/// Codes are decoded by the running range. Extremes are gathered between two of its updates, by
/// anybody and in any order, as keys: all zeros = none seen yet.
struct alignas(16) GroupRange {
  float range = 0, minimum = 0;
  std::uint32_t least = 0, most = 0;  ///< order_key() of the largest −x, of the largest x
};

/// Grows with x, and order_key(−x) is its complement. Of a NaN one of the two is beyond those of
/// all numbers, so that a range with a NaN in it is none.
TIDEMARK_ANYWHERE constexpr std::uint32_t order_key(float x) {
  const std::uint32_t bits = format::bits_of(x);
  return (bits & format::sign_bit) != 0 ? ~bits : bits | format::sign_bit;
}
TIDEMARK_ANYWHERE constexpr float number_of_key(std::uint32_t key) {
  return format::float_of((key & format::sign_bit) != 0 ? key ^ format::sign_bit : ~key);
}

/// An element of a storage, counted as they lie in memory, belongs to group
/// element / stretch mod count. An array of floats with groups: whoever writes it notes the
/// minimum and maximum. One of UInt8: its elements are codes, and whoever reads it decodes them.
/// Codes of fewer than 8 bits are packed, the first of a byte in its lowest bits. Their array
/// counts a byte per element all the same: an address less `first` is the element's number, while
/// its code is in byte number · bits / 8 from `first` on.
struct Groups {
  GroupRange* ranges = nullptr;      ///< `count` of them; nullptr = no groups
  const std::byte* first = nullptr;  ///< the storage's element 0
  std::int64_t stretch = 1, count = 1;
  int bits = 8;  ///< of a code: 2, 4 or 8
  /// Of values: where whoever writes them writes their codes, too, a byte each, by the ranges as
  /// they are. nullptr = it only notes extremes.
  std::uint8_t* codes = nullptr;
  std::uint64_t dither = 0;  ///< in a call the key of the codes' dither, in a kernel the step's

  explicit operator bool() const { return ranges != nullptr; }
};

}  // namespace tidemark
