// exp, tanh, the logistic function and the normal distribution in fp32, without branches and
// calls, so that loops over them become vector code: where conditional expressions may be computed
// on both sides (-fno-trapping-math), g++ makes selections of them. Errors, measured by
// tests/kernels/elementary_test.cpp against double: exp and tanh at most 2 units in the last
// place, the logistic function 3, the normal distribution 8, also in its tail. NaN gives NaN,
// infinities the limits.
//
// The polynomials are minimax fits (Remez' exchange in 40 digits; the coefficients were rounded
// to fp32 from the lowest on, each time fitting the rest anew). Their own error stands beside
// them; an ulp is 6e-8.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/clones.h"

namespace tidemark::cpu {

/// 2^n·(e^r), where x + low = n·ln 2 + r: for exp_of() and exp_of_negative().
struct PowerOfTwo {
  float shifted;  ///< n + round
  float power;    ///< e^r
};
TIDEMARK_INLINE PowerOfTwo split_exponent(float x, float low, float round) {
  constexpr float log2_e = 1.44269504f;
  const float shifted = x * log2_e + round;
  const float n = shifted - round;
  // ln 2 in two parts; n times the first is exact, which has nine bits.
  const float r = (x - n * 0.693359375f) + (n * 2.12194440e-4f + low);
  // e^r = 1 + r + r²·q(r) for |r| ≤ ln(2)/2: relative error 3.2e-9.
  float q = 1.3836434809491038e-3f;
  q = q * r + 8.36913101375103e-3f;
  q = q * r + 4.1668105870485306e-2f;
  q = q * r + 1.6666516661643982e-1f;
  q = q * r + 4.999999403953552e-1f;
  return {shifted, r * r * q + r + 1.0f};
}

/// Adding 1.5·2^23 leaves the nearest integer in the last bits.
inline constexpr float to_integer = 12582912.0f;

/// e^x
TIDEMARK_INLINE float exp_of(float x) {
  // Beyond these it is infinite, and less than half the smallest number. NaN passes.
  const float below = x > 89.0f ? 89.0f : x;
  const float in = below < -104.0f ? -104.0f : below;
  const PowerOfTwo split = split_exponent(in, 0.0f, to_integer);
  // 2^n in two factors: n reaches 128 and −150.
  const std::int32_t k =
      std::bit_cast<std::int32_t>(split.shifted) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t half = k >> 1;
  return split.power * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((k - half + 127) << 23);
}

/// e^(x + low) for −130 ≤ x ≤ 0, in half the time; `low` is tiny against x: what x's rounding left
/// out.
TIDEMARK_INLINE float exp_of_negative(float x, float low = 0.0f) {
  // The last bits of `shifted` are n + 64 as an exponent of fp32 has them, for n ≥ −190.
  const PowerOfTwo split = split_exponent(x, low, to_integer + (127 + 64));
  return split.power * std::bit_cast<float>(std::bit_cast<std::uint32_t>(split.shifted) << 23) *
         0x1p-64f;
}

/// 1 / (1 + e^−x)
TIDEMARK_INLINE float logistic(float x) { return 1.0f / (1.0f + exp_of(-x)); }

TIDEMARK_INLINE float tanh_of(float x) {
  const float size = std::abs(x);
  // (1 − e^−2|x|) / (1 + e^−2|x|); from 10 on the quotient is 1.
  const float power = exp_of_negative(-2.0f * (size > 10.0f ? 10.0f : size));
  const float large = (1.0f - power) / (1.0f + power);
  // x + x³·p(x²) for |x| ≤ 0.63: relative error 4.8e-9.
  const float square = x * x;
  float p = -5.6636217050254345e-3f;
  p = p * square + 2.06032395362854e-2f;
  p = p * square - 5.372913181781769e-2f;
  p = p * square + 1.3331320881843567e-1f;
  p = p * square - 3.3333277702331543e-1f;
  const float small = size + size * square * p;
  return std::copysign(size < 0.63f ? small : large, x);
}

/// The normal distribution's Φ(x), and e^(−x²/2).
struct Normal {
  float cdf, bell;
};
TIDEMARK_INLINE Normal normal(float x) {
  const float size = std::abs(x);
  const float z = size > 16.0f ? 16.0f : size;  // e^−128 is 0 in fp32
  // z² in two parts: the first, of twelve bits squared, is exact.
  const float high = std::bit_cast<float>(std::bit_cast<std::uint32_t>(z) & 0xfffff000u);
  const float bell = exp_of_negative(-0.5f * (high * high), -0.5f * ((z - high) * (z + high)));
  // Φ(−z)·e^(z²/2) = u·p(u), u = 1 / (1 + z·scale), for z ≤ 14.5: relative error 9.6e-9.
  constexpr float scale = 0.25f;
  const float u = 1.0f / (1.0f + z * scale);
  float p = 0.016891960054636f;
  p = p * u - 0.06453471630811691f;
  p = p * u + 0.05587359517812729f;
  p = p * u + 0.022618919610977173f;
  p = p * u + 0.017727874219417572f;
  p = p * u + 0.08385500311851501f;
  p = p * u + 0.07301145792007446f;
  p = p * u + 0.09528815746307373f;
  p = p * u + 0.09952142089605331f;
  p = p * u + 0.09974633157253265f;
  const float tail = bell * (p * u);
  return {x < 0.0f ? tail : 1.0f - tail, bell};
}

}  // namespace tidemark::cpu
