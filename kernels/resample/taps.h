// Which elements of a line make element i of its resampled line, and with what weights: the same
// for CPU and CUDA.
#pragma once

#include <cstdint>

#include "kernels/number_formats.h"

namespace tidemark {

enum class Resampling : std::uint8_t {
  Bilinear,  ///< torch.nn.functional.interpolate, align_corners=False
  Bicubic,   ///< likewise; cubic convolution with a = −0.75
  Mean,      ///< adaptive_avg_pool2d: of elements ⌊i·n/m⌋ to ⌈(i + 1)·n/m⌉
  Place,     ///< element i itself; zero behind the end
};

/// Elements first, first + 1, …, each held inside of the line.
struct Taps {
  std::int64_t first = 0, count = 0;
  float w0 = 0, w1 = 0, w2 = 0, w3 = 0;  ///< by name: an index would put them into local memory

  TIDEMARK_ANYWHERE float weight(Resampling kind, std::int64_t t) const {
    if (kind == Resampling::Mean) return w0;  // that of all
    return t == 0 ? w0 : t == 1 ? w1 : t == 2 ? w2 : w3;
  }
  TIDEMARK_ANYWHERE std::int64_t index(std::int64_t t, std::int64_t n) const {
    const std::int64_t at = first + t;
    return at < 0 ? 0 : at < n ? at : n - 1;
  }
};

TIDEMARK_ANYWHERE inline std::int64_t floor_of(float x) {
  const auto whole = static_cast<std::int64_t>(x);
  return static_cast<float>(whole) > x ? whole - 1 : whole;
}

/// Cubic convolution (Keys 1981) at distances 1 + t, t, 1 − t and 2 − t.
TIDEMARK_ANYWHERE inline void set_cubic(Taps& taps, float t) {
  constexpr float a = -0.75f;
  const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  taps.w0 = far(1 + t), taps.w1 = near(t), taps.w2 = near(1 - t), taps.w3 = far(2 - t);
}

/// Of element i of m, made of n.
TIDEMARK_ANYWHERE inline Taps taps_of(Resampling kind, std::int64_t i, std::int64_t n,
                                      std::int64_t m) {
  Taps taps;
  if (kind == Resampling::Place) {
    taps.first = i, taps.count = i < n ? 1 : 0, taps.w0 = 1;
  } else if (kind == Resampling::Mean) {
    taps.first = i * n / m;
    taps.count = ((i + 1) * n + m - 1) / m - taps.first;
    taps.w0 = 1.0f / static_cast<float>(taps.count);
  } else {
    const float scale = static_cast<float>(n) / static_cast<float>(m);
    float at = scale * (static_cast<float>(i) + 0.5f) - 0.5f;
    if (kind == Resampling::Bilinear && at < 0) at = 0;
    const std::int64_t whole = floor_of(at);
    const float rest = at - static_cast<float>(whole);
    if (kind == Resampling::Bilinear) {
      taps.first = whole, taps.count = 2;
      taps.w0 = 1 - rest, taps.w1 = rest;
    } else {
      taps.first = whole - 1, taps.count = 4;
      set_cubic(taps, rest);
    }
  }
  return taps;
}

/// The elements of the resampled line that may have read element u: [begin, end).
struct Readers {
  std::int64_t begin, end;
};
TIDEMARK_ANYWHERE inline Readers readers_of(Resampling kind, std::int64_t u, std::int64_t n,
                                            std::int64_t m) {
  const std::int64_t reach = kind == Resampling::Mean || kind == Resampling::Place ? 1 : 3;
  std::int64_t begin = (u - reach) * m / n - 1, end = (u + reach + 1) * m / n + 2;
  if (kind == Resampling::Place) begin = u, end = u + 1;
  return {begin < 0 ? 0 : begin, end < m ? end : m};
}

}  // namespace tidemark
