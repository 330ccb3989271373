// bfloat16 and IEEE half precision as bits, and their conversion from and to fp32: exact towards
// fp32, rounded to nearest even from it. NaNs keep their sign and their upper payload bits and
// become quiet, as the conversion instructions do it, so that both ways give the same bits.
#pragma once

#include <cstdint>

#include "kernels/philox.h"

namespace tidemark {

struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

namespace format {

// The builtin, unlike std::bit_cast, is open to device code too.
TIDEMARK_ANYWHERE constexpr std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
TIDEMARK_ANYWHERE constexpr float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

inline constexpr std::uint32_t sign_bit = 0x80000000, infinity_bits = 0x7f800000,
                               quiet_bit = 0x00400000;

}  // namespace format

TIDEMARK_ANYWHERE constexpr float to_float(float x) { return x; }

TIDEMARK_ANYWHERE constexpr float to_float(BFloat16 x) {
  return format::float_of(std::uint32_t{x.bits} << 16);
}

// All four cases are computed and one is selected: no branch stands in the way of vectors.
TIDEMARK_ANYWHERE constexpr float to_float(Float16 x) {
  const std::uint32_t sign = (std::uint32_t{x.bits} & 0x8000) << 16;
  const std::uint32_t magnitude = (std::uint32_t{x.bits} & 0x7fff) << 13;
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  // A subnormal's fraction, read as that of 2^-14, is 2^-14 too large.
  const float tiny =
      format::float_of(magnitude + rebias + (1u << 23)) - format::float_of(rebias + (1u << 23));
  const std::uint32_t special = magnitude + 2 * rebias;  // exponent 31 becomes 255
  std::uint32_t bits = magnitude + rebias;
  bits = magnitude < (1u << 23) ? format::bits_of(tiny) : bits;
  bits = magnitude >= (31u << 23) ? special : bits;
  bits = magnitude > (31u << 23) ? bits | format::quiet_bit : bits;
  return format::float_of(bits | sign);
}

TIDEMARK_ANYWHERE constexpr BFloat16 to_bfloat16(float x) {
  const std::uint32_t bits = format::bits_of(x);
  const bool is_nan = (bits & ~format::sign_bit) > format::infinity_bits;
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const std::uint32_t kept = is_nan ? bits | format::quiet_bit : rounded;
  return {static_cast<std::uint16_t>(kept >> 16)};
}

TIDEMARK_ANYWHERE constexpr Float16 to_float16(float x) {
  const std::uint32_t bits = format::bits_of(x);
  const std::uint32_t sign = (bits & format::sign_bit) >> 16;
  const std::uint32_t magnitude = bits & ~format::sign_bit;
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  constexpr std::uint32_t infinity = 0x7c00;
  // Below 2^-14 the adder rounds: beside 0.5, whose last bit is 2^-24, nothing finer is left.
  const std::uint32_t tiny =
      format::bits_of(format::float_of(magnitude) + 0.5f) - format::bits_of(0.5f);
  // From 65520 = 2^16 − 2^4 on, half way to the first number that is none, it is infinite.
  constexpr std::uint32_t overflow = 0x477ff000;
  std::uint32_t half = (magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  half = magnitude < (113u << 23) ? tiny : half;
  half = magnitude >= overflow ? infinity : half;
  half = magnitude > format::infinity_bits ? infinity | 0x200 | (magnitude >> 13 & 0x3ff) : half;
  return {static_cast<std::uint16_t>(half | sign)};
}

/// The value as `T`: one of float, BFloat16, Float16.
template <typename T>
TIDEMARK_ANYWHERE constexpr T from_float(float x);
template <>
TIDEMARK_ANYWHERE constexpr float from_float<float>(float x) {
  return x;
}
template <>
TIDEMARK_ANYWHERE constexpr BFloat16 from_float<BFloat16>(float x) {
  return to_bfloat16(x);
}
template <>
TIDEMARK_ANYWHERE constexpr Float16 from_float<Float16>(float x) {
  return to_float16(x);
}

}  // namespace tidemark
