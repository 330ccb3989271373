// Dither for codes that are written in passing: a hash of the element's number, eight bits per
// element, where Philox's ten rounds would cost more than what they are added to. A byte is fine
// enough: the mean error that its steps leave is at most 1/512 of a code.
#pragma once

#include <cstdint>

#include "kernels/number_formats.h"

namespace tidemark {

/// The bits of a number well mixed: two multiplications (the finalizer of MurmurHash3 for 64 bits,
/// whose constants its author found by search).
TIDEMARK_ANYWHERE constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
  return x ^ x >> 33;
}
/// The same for 32 bits.
TIDEMARK_ANYWHERE constexpr std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

/// The key of one step's dither, from that of the tensor.
constexpr std::uint64_t step_dither(std::uint64_t seed, std::int64_t step, std::uint64_t key) {
  return mixed(mixed(seed ^ static_cast<std::uint64_t>(step) * 0x9E3779B97F4A7C15u) ^ key);
}

/// Bytes for elements 4 · block to 4 · block + 3, the first in the lowest bits.
TIDEMARK_ANYWHERE constexpr std::uint32_t dither_word(std::uint64_t step_key, std::uint64_t block) {
  const std::uint64_t both = step_key + block;
  return mixed(static_cast<std::uint32_t>(both) ^ mixed(static_cast<std::uint32_t>(both >> 32)));
}

/// What is added before a number is rounded to the nearest integer: (byte + 1/2) / 256 − 1/2, exact
/// in fp32, and 0 in the mean over all bytes.
TIDEMARK_ANYWHERE constexpr float dither_of(std::uint32_t byte) {
  return format::float_of(0x3f804000u | byte << 15) - 1.5f;
}
/// Element i's, of its word.
TIDEMARK_ANYWHERE constexpr float dither_of(std::uint32_t word, std::uint64_t i) {
  return dither_of(word >> 8 * (i % 4) & 0xff);
}

}  // namespace tidemark
