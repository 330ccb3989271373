// A thread per byte of sides, and so per eight elements; see inverted.h.
#pragma once

#include "kernels/activation/activation.cuh"
#include "kernels/cuda/indices.cuh"
#include "kernels/inverted/slopes.h"

namespace tidemark::cuda {

inline constexpr int per_byte = 8;

/// Elements `first` to `first` + V of what is numbered row by row; arrays without a gap are read in
/// vectors, others one by one.
template <int N, int V, bool is_dense>
__device__ inline Place<N> eighth(const Walk<N>& walk, std::int64_t first, std::int64_t count) {
  if constexpr (is_dense) {
    Place<N> at;
    for (int k = 0; k < N; ++k) at.offset[k] = first;
    at.valid = count - first < V ? static_cast<int>(count - first) : V;
    return at;
  } else {
    return walk.template place<1>(first);
  }
}

template <typename Function, typename T, bool is_dense>
__global__ void inverted_forward_kernel(Reader<T> x, Writer<T> y, std::uint8_t* sides,
                                        float minimum, Walk<2> walk, std::int64_t count) {
  constexpr int V = is_dense ? vector_size<T> : 1;
  const std::int64_t bytes = (count + per_byte - 1) / per_byte;
  for (std::int64_t byte = thread_of_grid(); byte < bytes; byte += threads_of_grid()) {
    unsigned packed = 0;
    for (int part = 0; part < per_byte && byte * per_byte + part < count; part += V) {
      const auto at = eighth<2, V, is_dense>(walk, byte * per_byte + part, count);
      float in[V], out[V];
      load<V>(x, at.offset[0], 1, at.valid, in);
      for (int e = 0; e < V; ++e) {
        const float value[1] = {in[e]};
        out[e] = Function{}(value);
        if (e < at.valid) packed |= static_cast<unsigned>(in[e] > minimum) << (part + e);
      }
      store<V>(y, at.offset[1], 1, at.valid, out);
    }
    sides[byte] = static_cast<std::uint8_t>(packed);
  }
}

/// f'(x) of the x on that side of the minimum where f(x) = y.
__device__ inline float slope_of_value(const SlopeOfValue& f, float y, bool is_right) {
  const float above = y - f.lowest;
  const float t = sqrtf(above < 0.0f ? 0.0f : above);
  if (is_right && t > f.end) return 1.0f;
  const float rest = f.zero - t;
  const float along =
      is_right ? t * (4.0f / f.end) : sqrtf((rest < 0.0f ? 0.0f : rest) / f.zero) * 2.0f;
  const bool is_second = is_right && along >= 2.0f;
  const float z = along - (is_second ? 3.0f : 1.0f);
  float slope = 0.0f;
  TIDEMARK_UNROLL
  for (int k = 9; k >= 0; --k)
    slope = slope * z + (is_second ? f.right[1][k] : is_right ? f.right[0][k] : f.left[k]);
  return slope;
}

template <typename T, bool is_dense>
__global__ void inverted_backward_kernel(Reader<T> dy, Reader<T> y, Writer<T> dx,
                                         const std::uint8_t* sides, SlopeOfValue f, Walk<3> walk,
                                         std::int64_t count) {
  constexpr int V = is_dense ? vector_size<T> : 1;
  const std::int64_t bytes = (count + per_byte - 1) / per_byte;
  for (std::int64_t byte = thread_of_grid(); byte < bytes; byte += threads_of_grid()) {
    const unsigned packed = sides[byte];
    for (int part = 0; part < per_byte && byte * per_byte + part < count; part += V) {
      const auto at = eighth<3, V, is_dense>(walk, byte * per_byte + part, count);
      float gradient[V], value[V], out[V];
      load<V>(dy, at.offset[0], 1, at.valid, gradient);
      load<V>(y, at.offset[1], 1, at.valid, value);
      for (int e = 0; e < V; ++e)
        out[e] = gradient[e] * slope_of_value(f, value[e], (packed >> (part + e) & 1u) != 0);
      store<V>(dx, at.offset[2], 1, at.valid, out);
    }
  }
}

}  // namespace tidemark::cuda
