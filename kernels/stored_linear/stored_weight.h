// What a stored weight's elements are, for CPU and CUDA alike: the formats of bitsandbytes 0.50.
#pragma once

#include <cstdint>

#include "kernels/number_formats.h"

namespace tidemark {

/// Elements per factor, and factors per factor of theirs (QLoRA, arXiv 2305.14314, section 3).
inline constexpr std::int64_t elements_per_factor = 64, factors_per_factor = 256;

/// The codes' numbers: quantiles of a normal distribution, with a zero (arXiv 2305.14314, appendix
/// E; get_4bit_type("nf4") in bitsandbytes/functional.py).
inline constexpr float nf4_numbers[16] = {-1.0f,
                                          -0.6961928009986877f,
                                          -0.5250730514526367f,
                                          -0.39491748809814453f,
                                          -0.28444138169288635f,
                                          -0.18477343022823334f,
                                          -0.09105003625154495f,
                                          0.0f,
                                          0.07958029955625534f,
                                          0.16093020141124725f,
                                          0.24611230194568634f,
                                          0.33791524171829224f,
                                          0.44070982933044434f,
                                          0.5626170039176941f,
                                          0.7229568362236023f,
                                          1.0f};

/// A weight in four bits: two codes per byte, the first in its upper half, and a factor per 64; the
/// factors may themselves be codes, with a factor per 256.
struct FourBitWeight {
  const std::uint8_t* codes = nullptr;
  const float* factors = nullptr;              ///< or
  const std::uint8_t* factor_codes = nullptr;  ///< of the numbers in factor_map
  const float *map = nullptr, *outer_factors = nullptr, *factor_map = nullptr;

  TIDEMARK_ANYWHERE float factor(std::int64_t i) const {
    if (factors != nullptr) return factors[i];
    return factor_map[factor_codes[i]] * outer_factors[i / factors_per_factor];
  }
  TIDEMARK_ANYWHERE float operator()(std::int64_t i) const {
    const unsigned pair = codes[i / 2];
    return map[i % 2 == 0 ? pair >> 4 : pair & 15u] * factor(i / elements_per_factor);
  }
};

/// The largest code of eight bits, and what one of them is worth beside a row's factor.
inline constexpr float int8_levels = 127;

/// Bytes hold codes of two's complement.
TIDEMARK_ANYWHERE inline float int8_code(std::uint8_t byte) {
  return static_cast<float>(byte < 128 ? int{byte} : int{byte} - 256);
}

}  // namespace tidemark
