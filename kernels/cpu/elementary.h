// exp, tanh, the logistic function and the normal distribution in fp32, without branches and
// calls, so that loops over them become vector code. Errors, measured by
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

/// `a` if the condition holds, else `b`. Of conditional expressions g++ makes jumps, and of those,
/// where the processor has no masks, no vectors.
TIDEMARK_INLINE float choose(bool condition, float a, float b) {
  const std::uint32_t mask = condition ? 0xffffffffu : 0u;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) |
                              (std::bit_cast<std::uint32_t>(b) & ~mask));
}

/// e^(x + low), where `low` is tiny against x: what x's rounding left out.
TIDEMARK_INLINE float exp_of(float x, float low = 0.0f) {
  // Beyond these it is infinite, and less than half the smallest number. NaN passes.
  const float below = choose(x > 89.0f, 89.0f, x);
  const float in = choose(below < -104.0f, -104.0f, below);
  // Adding 1.5·2^23 leaves the nearest integer in the last bits.
  constexpr float round = 12582912.0f;
  constexpr float log2_e = 1.44269504f;
  const float shifted = in * log2_e + round;
  const float n = shifted - round;
  // ln 2 in two parts; n times the first is exact, which has nine bits.
  const float r = (in - n * 0.693359375f) + n * 2.12194440e-4f + low;
  // e^r = 1 + r + r²·q(r) for |r| ≤ ln(2)/2: relative error 3.2e-9.
  float q = 1.3836434809491038e-3f;
  q = q * r + 8.36913101375103e-3f;
  q = q * r + 4.1668105870485306e-2f;
  q = q * r + 1.6666516661643982e-1f;
  q = q * r + 4.999999403953552e-1f;
  const float power = r * r * q + r + 1.0f;
  // 2^n in two factors: n reaches 128 and −150.
  const std::int32_t k = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(round);
  const std::int32_t half = k >> 1;
  return power * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((k - half + 127) << 23);
}

/// 1 / (1 + e^−x)
TIDEMARK_INLINE float logistic(float x) { return 1.0f / (1.0f + exp_of(-x)); }

TIDEMARK_INLINE float with_sign_of(float sign, float magnitude) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(magnitude) & 0x7fffffffu) |
                              (std::bit_cast<std::uint32_t>(sign) & 0x80000000u));
}

TIDEMARK_INLINE float tanh_of(float x) {
  const float size = with_sign_of(0.0f, x);
  const float large = 1.0f - 2.0f / (exp_of(2.0f * size) + 1.0f);
  // x + x³·p(x²) for |x| ≤ 0.63: relative error 4.8e-9.
  const float square = x * x;
  float p = -5.6636217050254345e-3f;
  p = p * square + 2.06032395362854e-2f;
  p = p * square - 5.372913181781769e-2f;
  p = p * square + 1.3331320881843567e-1f;
  p = p * square - 3.3333277702331543e-1f;
  const float small = size + size * square * p;
  return with_sign_of(x, choose(size < 0.63f, small, large));
}

/// The normal distribution's Φ(x), and e^(−x²/2).
struct Normal {
  float cdf, bell;
};
TIDEMARK_INLINE Normal normal(float x) {
  const float size = with_sign_of(0.0f, x);
  const float z = choose(size > 16.0f, 16.0f, size);  // e^−128 is 0 in fp32
  // z² in two parts: the first, of twelve bits squared, is exact.
  const float high = std::bit_cast<float>(std::bit_cast<std::uint32_t>(z) & 0xfffff000u);
  const float bell = exp_of(-0.5f * (high * high), -0.5f * ((z - high) * (z + high)));
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
  return {choose(x < 0.0f, tail, 1.0f - tail), bell};
}

}  // namespace tidemark::cpu
