// Floats of eight bits: a group's threads find its magnitude and then make its codes; one group of
// a whole tensor takes a kernel for each. Where the CPU kernel rounds after each operation this one
// does, too: equal values give equal codes.
#pragma once

#include "kernels/cuda/vector_io.cuh"
#include "kernels/float8/e4m3.h"

namespace tidemark::cuda {

/// Over `lanes` neighbours of a warp, a power of two; every one gets the largest.
__device__ inline std::uint32_t largest_of_lanes(std::uint32_t key, unsigned lanes) {
  for (unsigned bits = lanes / 2; bits > 0; bits /= 2) {
    const std::uint32_t other = __shfl_xor_sync(whole_warp, key, static_cast<int>(bits));
    key = other > key ? other : key;
  }
  return key;
}

template <int V>
__device__ inline std::uint32_t largest_key(const float (&x)[V]) {
  std::uint32_t largest = 0;
  TIDEMARK_UNROLL
  for (int e = 0; e < V; ++e) {
    const std::uint32_t key = magnitude_key(x[e]);
    largest = key > largest ? key : largest;
  }
  return largest;
}

template <int V>
__device__ inline void store_float8(Float8* codes, std::int64_t vector, const float (&x)[V],
                                    float inverse) {
  Pack<Float8, V> pack;
  TIDEMARK_UNROLL
  for (int e = 0; e < V; ++e) pack.values[e] = to_float8(x[e] * inverse);
  reinterpret_cast<Pack<Float8, V>*>(codes)[vector] = pack;
}

/// `lanes` threads per group, which is `stretch` vectors long. The group is read twice, the second
/// time from a cache that is near.
template <typename T, int V>
__global__ void float8_groups_kernel(const T* value, Float8* codes, float* magnitudes,
                                     std::int64_t groups, std::int64_t stretch, unsigned lanes) {
  const std::int64_t of_block = blockDim.x / lanes, of_grid = gridDim.x * of_block;
  const unsigned lane = threadIdx.x % lanes;
  // All threads of a warp go round equally often, for the shuffles.
  for (std::int64_t first = blockIdx.x * of_block; first < groups; first += of_grid) {
    const std::int64_t group = first + threadIdx.x / lanes;
    const std::int64_t begin = group * stretch, end = group < groups ? begin + stretch : begin;
    std::uint32_t key = 0;
    float x[V];
    for (std::int64_t i = begin + lane; i < end; i += lanes) {
      load_of<V>(value, i * V, 1, V, x);
      const std::uint32_t found = largest_key(x);
      key = found > key ? found : key;
    }
    const float magnitude = format::float_of(largest_of_lanes(key, lanes));
    if (lane == 0 && group < groups) magnitudes[group] = magnitude;
    const float inverse = float8_inverse(magnitude);
    for (std::int64_t i = begin + lane; i < end; i += lanes) {
      load_of<V>(value, i * V, 1, V, x);
      store_float8<V>(codes, i, x, inverse);
    }
  }
}

__global__ void float8_clear_kernel(float* magnitude) { *magnitude = 0; }

/// Of one group. The bits of numbers that are not negative grow with them.
template <typename T, int V>
__global__ void float8_magnitude_kernel(const T* value, std::int64_t vectors, float* magnitude) {
  std::uint32_t key = 0;
  for (std::int64_t i = thread_of_grid(); i < vectors; i += threads_of_grid()) {
    float x[V];
    load_of<V>(value, i * V, 1, V, x);
    const std::uint32_t found = largest_key(x);
    key = found > key ? found : key;
  }
  key = largest_of_lanes(key, warp_size);
  if (threadIdx.x % warp_size == 0) note_max(reinterpret_cast<std::uint32_t*>(magnitude), key);
}

template <typename T, int V>
__global__ void float8_codes_kernel(const T* value, Float8* codes, std::int64_t vectors,
                                    const float* magnitude) {
  const float inverse = float8_inverse(*magnitude);
  for (std::int64_t i = thread_of_grid(); i < vectors; i += threads_of_grid()) {
    float x[V];
    load_of<V>(value, i * V, 1, V, x);
    store_float8<V>(codes, i, x, inverse);
  }
}

template <typename T, int V>
__global__ void float8_values_kernel(const Float8* codes, const float* magnitudes, T* value,
                                     std::int64_t vectors, Divisor stretch) {
  for (std::int64_t i = thread_of_grid(); i < vectors; i += threads_of_grid()) {
    std::int64_t rest = i;
    const float scale = float8_scale(magnitudes[stretch.divide(rest)]);
    const auto pack = reinterpret_cast<const Pack<Float8, V>*>(codes)[i];
    float x[V];
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) x[e] = to_float(pack.values[e]) * scale;
    reinterpret_cast<Pack<T, V>*>(value)[i] = packed<T>(x);
  }
}

}  // namespace tidemark::cuda
