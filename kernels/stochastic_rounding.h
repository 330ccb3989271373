// The random numbers that decide which way a value is rounded, so that the mean is right: one per
// element, of which Philox's usual ten rounds and 24 bits would take a GPU longer than its memory
// takes for what is rounded.
#pragma once

#include "kernels/number_formats.h"
#include "kernels/philox.h"

namespace tidemark {

/// Seven rounds, and 16 bits per element: the eight elements of a block take its words in order, of
/// each the lower half first.
inline constexpr int rounding_rounds = 7;
TIDEMARK_ANYWHERE constexpr std::uint32_t rounding_bits(const PhiloxBlock& block, unsigned place) {
  return block.word[place / 2] >> 16 * (place % 2) & 0xffffu;
}
/// What is added before a number is rounded to the nearest integer: (bits + 1/2) / 2^16 − 1/2,
/// exact in fp32, and 0 in the mean over all bits.
TIDEMARK_ANYWHERE constexpr float rounding_of(std::uint32_t bits) {
  return format::float_of(0x3f800040u | bits << 7) - 1.5f;
}
/// Of element `i` of the random tensor (seed, step number, key).
TIDEMARK_ANYWHERE constexpr float rounding_at(std::uint64_t seed, std::int64_t step,
                                              std::uint64_t key, std::uint64_t i) {
  const PhiloxBlock block = philox<rounding_rounds>(step_key(seed, step), i / 8, key);
  return rounding_of(rounding_bits(block, static_cast<unsigned>(i % 8)));
}

}  // namespace tidemark
