// Floats of eight bits as OCP's 8-bit formats define e4m3 (PyTorch's float8_e4m3fn): a sign, four
// bits of exponent, three of mantissa, no infinity, and one NaN beside each sign. Towards fp32 the
// conversion is exact; from it, rounded to nearest even and saturating.
#pragma once

#include "kernels/number_formats.h"

namespace tidemark {

struct Float8 {
  std::uint8_t bits = 0;
};

inline constexpr float float8_largest = 448;  // 1.75 · 2^8

namespace format {

inline constexpr std::uint32_t float8_rebias = (127 - 7) << 23;
inline constexpr std::uint8_t float8_nan = 0x7f;

}  // namespace format

TIDEMARK_ANYWHERE constexpr float to_float(Float8 x) {
  const std::uint32_t sign = (std::uint32_t{x.bits} & 0x80) << 24;
  const std::uint32_t magnitude = (std::uint32_t{x.bits} & 0x7f) << 20;
  // A subnormal's fraction, read as that of 2^-6, is 2^-6 too large.
  const float tiny = format::float_of(magnitude + format::float8_rebias + (1u << 23)) -
                     format::float_of(format::float8_rebias + (1u << 23));
  std::uint32_t bits = magnitude + format::float8_rebias;
  bits = magnitude < (1u << 23) ? format::bits_of(tiny) : bits;
  bits = magnitude == (0x7fu << 20) ? format::infinity_bits | format::quiet_bit : bits;
  return format::float_of(bits | sign);
}

TIDEMARK_ANYWHERE constexpr Float8 to_float8(float x) {
  const std::uint32_t bits = format::bits_of(x);
  const std::uint32_t sign = (bits & format::sign_bit) >> 24;
  const std::uint32_t found = bits & ~format::sign_bit;
  const std::uint32_t most = format::bits_of(float8_largest);
  const std::uint32_t magnitude = found < most ? found : most;
  // Below 2^-6 the adder rounds: beside 2^14, whose last bit is 2^-9, nothing finer is left.
  const std::uint32_t tiny =
      format::bits_of(format::float_of(magnitude) + 0x1p14f) - format::bits_of(0x1p14f);
  std::uint32_t code =
      (magnitude - format::float8_rebias + 0x7ffff + ((magnitude >> 20) & 1)) >> 20;
  code = magnitude < (121u << 23) ? tiny : code;
  // A NaN that an operation makes has a sign on some processors and none on others: one code.
  code = found > format::infinity_bits ? format::float8_nan : code | sign;
  return {static_cast<std::uint8_t>(code)};
}

/// The codes of a group whose largest magnitude is this one, times the scale, are its values: that
/// magnitude is the largest code. NaN and infinity come back as NaN from all of the group.
TIDEMARK_ANYWHERE constexpr float float8_scale(float magnitude) {
  return magnitude / float8_largest;
}
/// What its values are multiplied by before they become codes. Below 2^-110, where quotients would
/// leave the range of fp32, a group counts as zeros.
TIDEMARK_ANYWHERE constexpr float float8_inverse(float magnitude) {
  return magnitude >= 0x1p-110f ? float8_largest / magnitude : 0.0f;
}

/// The bits of |x|, which grow with it; those of a NaN are beyond those of all numbers.
TIDEMARK_ANYWHERE constexpr std::uint32_t magnitude_key(float x) {
  return format::bits_of(x) & ~format::sign_bit;
}

}  // namespace tidemark
