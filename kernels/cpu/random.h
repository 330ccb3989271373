// Many random numbers at once: what is behind uniform_at() of kernels/philox.h and rounding_at() of
// kernels/stochastic_rounding.h.
#pragma once

#include <cstdint>

#include "kernels/call.h"

namespace tidemark::cpu {

/// A random tensor: what uniform_at() takes besides the element.
struct RandomTensor {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::uint64_t key = 0;
};

/// Elements that random_words() makes at most at once, and what its buffer must hold: it makes
/// 32 blocks of four at a time, and the first element need not begin a block.
inline constexpr std::int64_t most_words = 1024;
inline constexpr std::int64_t word_buffer = most_words + 128;

/// The upper 24 bits of the words of elements [first, first + n): uniform_at() is (word + 1)·2^-24.
/// Returns where in `buffer` the first one is.
const std::uint32_t* random_words(const RandomTensor& tensor, std::int64_t first, std::int64_t n,
                                  std::uint32_t* buffer);

/// rounding_bits() of elements [first, first + n), at most most_words of them. Returns where in
/// `buffer` the first one is.
const std::uint16_t* many_rounding_bits(const RandomTensor& tensor, std::int64_t first,
                                        std::int64_t n, std::uint32_t* buffer);

}  // namespace tidemark::cpu
