// Philox4x32, a counter-based random generator (Salmon et al., SC 2011, doi
// 10.1145/2063384.2063405): the numbers of an element follow from key and element alone, so they
// are the same whenever, wherever and in whatever order a kernel runs. Its authors recommend ten
// rounds; from seven on they found no fault in it by any test of BigCrush.
#pragma once

#include <array>
#include <cstdint>

#if defined(__CUDACC__)
#define TIDEMARK_ANYWHERE __host__ __device__
#else
#define TIDEMARK_ANYWHERE
#endif

namespace tidemark {

struct PhiloxBlock {
  std::uint32_t word[4];
};

/// The four 32-bit words of block `counter`.
template <int rounds = 10>
TIDEMARK_ANYWHERE constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t counter,
                                               std::uint64_t stream = 0) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter),
                c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(stream),
                c3 = static_cast<std::uint32_t>(stream >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1), c3 = static_cast<std::uint32_t>(p0);
    c0 = n0, c2 = n2;
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// Uniform in (0, 1], with 24 bits: exact in fp32.
TIDEMARK_ANYWHERE constexpr float uniform_of(std::uint32_t word) {
  return static_cast<float>((word >> 8) + 1) * (1.0f / 16777216.0f);
}

/// The key of one step's blocks.
TIDEMARK_ANYWHERE constexpr std::uint64_t step_key(std::uint64_t seed, std::int64_t step) {
  return seed ^ (static_cast<std::uint64_t>(step) * 0x9E3779B97F4A7C15u);
}

/// Element `i` of the random tensor (seed, step number, key): word i mod 4 of block i / 4.
TIDEMARK_ANYWHERE constexpr float uniform_at(std::uint64_t seed, std::int64_t step,
                                             std::uint64_t key, std::uint64_t i) {
  const PhiloxBlock block = philox(step_key(seed, step), i / 4, key);
  return uniform_of(block.word[i % 4]);
}

}  // namespace tidemark
