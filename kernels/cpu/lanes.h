// Partial results side by side: loops that reduce a row keep as many as the widest registers hold,
// and the order of the operations depends on the length alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/clones.h"

namespace tidemark::cpu {

inline constexpr std::int64_t lanes = 16;

/// For loops that choose, two vectors: g++ unrolls sixteen steps before it looks for vectors, and
/// then it makes jumps of conditional expressions.
inline constexpr std::int64_t choosing_lanes = 32;

/// One of the lanes, by halves: a chain of few operations.
template <std::size_t n, typename F>
TIDEMARK_INLINE float fold_lanes(const float (&parts)[n], F&& f) {
  float half[n / 2];
  for (std::size_t k = 0; k < n / 2; ++k) half[k] = f(parts[k], parts[k + n / 2]);
  for (std::size_t m = n / 4; m > 0; m /= 2)
    for (std::size_t k = 0; k < m; ++k) half[k] = f(half[k], half[k + m]);
  return half[0];
}

TIDEMARK_INLINE float sum_of_lanes(const float (&parts)[lanes]) {
  return fold_lanes(parts, [](float a, float b) { return a + b; });
}

}  // namespace tidemark::cpu
