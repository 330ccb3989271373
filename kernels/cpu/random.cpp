// Philox's blocks in portable, AVX2 and AVX-512 code, chosen once by what the processor has.
#include "kernels/cpu/random.h"

#include <bit>
#include <cstring>

#include "kernels/stochastic_rounding.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tidemark::cpu {
namespace {

/// The blocks `first`, `first` + 1, … of a tensor.
struct PhiloxBlocks {
  std::uint64_t key, first, stream;
};

/// How many rounds, and how many of a word's lowest bits are dropped.
template <int rounds, int dropped>
void make_portably(const PhiloxBlocks& blocks, std::int64_t count, std::uint32_t* words) {
  for (std::int64_t j = 0; j < count; ++j) {
    const PhiloxBlock block =
        philox<rounds>(blocks.key, blocks.first + static_cast<std::uint64_t>(j), blocks.stream);
    for (int k = 0; k < 4; ++k) words[4 * j + k] = block.word[k] >> dropped;
  }
}

#if defined(__x86_64__)
// philox() for several blocks side by side, each word in the lower half of 64 bits: the processor's
// multiplication ignores the upper halves, so nothing need clear them. g++ does not find it: its
// code for the portable loop takes three times as long.
using Four = std::uint64_t __attribute__((vector_size(32)));
using Eight = std::uint64_t __attribute__((vector_size(64)));

/// What is left of two words in 64 bits.
template <int dropped>
constexpr std::uint64_t low_word = 0xffffffffu >> dropped;
template <int dropped>
constexpr std::uint64_t high_word = low_word<dropped> << 32;

template <int rounds, int dropped>
__attribute__((target("avx2"))) void make_by_avx2(const PhiloxBlocks& blocks, std::int64_t count,
                                                  std::uint32_t* words) {
  for (std::int64_t j = 0; j < count; j += 4) {
    Four c0 = Four{0, 1, 2, 3} + (blocks.first + static_cast<std::uint64_t>(j)), c1 = c0 >> 32;
    Four c2 = Four{} + blocks.stream, c3 = c2 >> 32;
    std::uint64_t k0 = blocks.key & 0xffffffff, k1 = blocks.key >> 32;
    for (int round = 0; round < rounds; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
      const __m256i p0 =
          _mm256_mul_epu32(reinterpret_cast<__m256i>(c0), _mm256_set1_epi64x(0xD2511F53));
      const __m256i p1 =
          _mm256_mul_epu32(reinterpret_cast<__m256i>(c2), _mm256_set1_epi64x(0xCD9E8D57));
      c0 = (reinterpret_cast<Four>(p1) >> 32) ^ c1 ^ k0, c1 = reinterpret_cast<Four>(p1);
      c2 = (reinterpret_cast<Four>(p0) >> 32) ^ c3 ^ k1, c3 = reinterpret_cast<Four>(p0);
    }
    // Words 0 and 1 of each block are one half of it, 2 and 3 the other.
    constexpr int up = 32 - dropped;
    const Four begin = (c0 >> dropped & low_word<dropped>) | (c1 << up & high_word<dropped>);
    const Four end = (c2 >> dropped & low_word<dropped>) | (c3 << up & high_word<dropped>);
    const Four first = __builtin_shufflevector(begin, end, 0, 4, 1, 5);
    const Four last = __builtin_shufflevector(begin, end, 2, 6, 3, 7);
    std::memcpy(words + 4 * j, &first, sizeof first);
    std::memcpy(words + 4 * j + 8, &last, sizeof last);
  }
}

// Four at a time: each round waits for the multiplications of the one before it.
template <int rounds, int dropped>
__attribute__((target("avx512f"))) void make_by_avx512(const PhiloxBlocks& blocks,
                                                       std::int64_t count, std::uint32_t* words) {
  constexpr int together = 4;
  for (std::int64_t j = 0; j < count; j += 8 * together) {
    Eight c0[together], c1[together], c2[together], c3[together];
    for (int t = 0; t < together; ++t) {
      c0[t] = Eight{0, 1, 2, 3, 4, 5, 6, 7} +
              (blocks.first + static_cast<std::uint64_t>(j) + 8 * static_cast<std::uint64_t>(t));
      c1[t] = c0[t] >> 32, c2[t] = Eight{} + blocks.stream, c3[t] = c2[t] >> 32;
    }
    std::uint64_t k0 = blocks.key & 0xffffffff, k1 = blocks.key >> 32;
    for (int round = 0; round < rounds; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85)
      for (int t = 0; t < together; ++t) {
        // The masked form, because g++ 12 takes its own unmasked one for uninitialized.
        const __m512i p0 = _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(c0[t]),
                                                  _mm512_set1_epi64(0xD2511F53));
        const __m512i p1 = _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(c2[t]),
                                                  _mm512_set1_epi64(0xCD9E8D57));
        c0[t] = (reinterpret_cast<Eight>(p1) >> 32) ^ c1[t] ^ k0,
        c1[t] = reinterpret_cast<Eight>(p1);
        c2[t] = (reinterpret_cast<Eight>(p0) >> 32) ^ c3[t] ^ k1,
        c3[t] = reinterpret_cast<Eight>(p0);
      }
    for (int t = 0; t < together; ++t) {
      constexpr int up = 32 - dropped;
      const Eight begin =
          (c0[t] >> dropped & low_word<dropped>) | (c1[t] << up & high_word<dropped>);
      const Eight end = (c2[t] >> dropped & low_word<dropped>) | (c3[t] << up & high_word<dropped>);
      const Eight first = __builtin_shufflevector(begin, end, 0, 8, 1, 9, 2, 10, 3, 11);
      const Eight last = __builtin_shufflevector(begin, end, 4, 12, 5, 13, 6, 14, 7, 15);
      std::memcpy(words + 4 * j + 32 * t, &first, sizeof first);
      std::memcpy(words + 4 * j + 32 * t + 16, &last, sizeof last);
    }
  }
}
#endif

using Maker = void (*)(const PhiloxBlocks&, std::int64_t, std::uint32_t*);

template <int rounds, int dropped>
Maker best_maker() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return make_by_avx512<rounds, dropped>;
  if (__builtin_cpu_supports("avx2")) return make_by_avx2<rounds, dropped>;
#endif
  return make_portably<rounds, dropped>;
}

}  // namespace

const std::uint32_t* random_words(const RandomTensor& tensor, std::int64_t first, std::int64_t n,
                                  std::uint32_t* buffer) {
  static const Maker make = best_maker<10, 8>();
  const std::int64_t count = (first + n + 3) / 4 - first / 4;
  make({step_key(tensor.seed, tensor.step), static_cast<std::uint64_t>(first / 4), tensor.key},
       count, buffer);
  return buffer + first % 4;
}

// The halves of words lie from the lower one on, as a little-endian machine stores them.
static_assert(std::endian::native == std::endian::little);

const std::uint16_t* many_rounding_bits(const RandomTensor& tensor, std::int64_t first,
                                        std::int64_t n, std::uint32_t* buffer) {
  static const Maker make = best_maker<rounding_rounds, 0>();
  const std::int64_t count = (first + n + 7) / 8 - first / 8;
  make({step_key(tensor.seed, tensor.step), static_cast<std::uint64_t>(first / 8), tensor.key},
       count, buffer);
  return reinterpret_cast<const std::uint16_t*>(buffer) + first % 8;
}

}  // namespace tidemark::cpu
