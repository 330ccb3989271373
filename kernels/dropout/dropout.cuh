// Dropout: a thread draws four random numbers at a time, as Philox gives them.
#pragma once

#include "kernels/cuda/gradients.cuh"
#include "kernels/philox.h"

namespace tidemark::cuda {

/// Which random tensor: its numbers are words of blocks, by place in row-major order.
struct RandomTensor {
  std::uint64_t key, stream;
};
inline RandomTensor random_tensor(const StepState& state, std::uint64_t key) {
  return {state.seed ^ (static_cast<std::uint64_t>(state.number) * 0x9E3779B97F4A7C15u), key};
}

/// Uniform numbers of elements first, first + 1, …
template <int V>
__device__ inline void uniform_numbers(const RandomTensor& random, std::int64_t first,
                                       float (&out)[V]) {
  if constexpr (V % 4 == 0)
    if (first % 4 == 0) {  // whole blocks
      TIDEMARK_UNROLL
      for (int b = 0; b < V / 4; ++b) {
        const auto i = static_cast<std::uint64_t>(first / 4 + b);
        const PhiloxBlock block = philox(random.key, i, random.stream);
        TIDEMARK_UNROLL
        for (int e = 0; e < 4; ++e) out[4 * b + e] = uniform_of(block.word[e]);
      }
      return;
    }
  PhiloxBlock block{};
  for (int e = 0; e < V; ++e) {
    const auto i = static_cast<std::uint64_t>(first + e);
    if (e == 0 || i % 4 == 0) block = philox(random.key, i / 4, random.stream);
    // Chosen, not indexed: an index would put the block into slow local memory.
    const std::uint32_t low = i % 2 == 0 ? block.word[0] : block.word[1];
    const std::uint32_t high = i % 2 == 0 ? block.word[2] : block.word[3];
    out[e] = uniform_of(i % 4 < 2 ? low : high);
  }
}

template <int V>
__device__ inline void load_bytes(const std::uint8_t* data, std::int64_t offset,
                                  std::int64_t stride, int valid, std::uint8_t (&out)[V]) {
  if (stride == 1 && valid == V) {
    const auto pack = *reinterpret_cast<const Pack<std::uint8_t, V>*>(data + offset);
    for (int e = 0; e < V; ++e) out[e] = pack.values[e];
    return;
  }
  for (int e = 0; e < V; ++e) out[e] = e < valid ? data[offset + e * stride] : std::uint8_t{0};
}
template <int V>
__device__ inline void store_bytes(std::uint8_t* data, std::int64_t offset, std::int64_t stride,
                                   int valid, const std::uint8_t (&values)[V]) {
  if (stride == 1 && valid == V) {
    Pack<std::uint8_t, V> pack;
    for (int e = 0; e < V; ++e) pack.values[e] = values[e];
    *reinterpret_cast<Pack<std::uint8_t, V>*>(data + offset) = pack;
    return;
  }
  for (int e = 0; e < V; ++e)
    if (e < valid) data[offset + e * stride] = values[e];
}

/// x → y and mask, or dy and mask → dx. Operands of the walk: from, to, mask, number of the
/// element.
template <bool is_backward, typename T, int V>
__global__ void dropout_kernel(Reader<T> from, Writer<T> to, std::uint8_t* mask, Walk<4> walk,
                               RandomTensor random, float probability, float scale) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    float x[V];
    std::uint8_t kept[V];
    load<V>(from, at.offset[0], walk.inner_stride[0], at.valid, x);
    if constexpr (is_backward) {
      load_bytes<V>(mask, at.offset[2], walk.inner_stride[2], at.valid, kept);
    } else {
      float uniform[V];
      uniform_numbers<V>(random, at.offset[3], uniform);
      for (int e = 0; e < V; ++e) kept[e] = uniform[e] > probability ? 1 : 0;
      if (mask != nullptr) store_bytes<V>(mask, at.offset[2], walk.inner_stride[2], at.valid, kept);
    }
    for (int e = 0; e < V; ++e) x[e] *= kept[e] != 0 ? scale : 0.0f;
    store<V>(to, at.offset[1], walk.inner_stride[1], at.valid, x);
  }
}

template <typename T>
__global__ void sample_mask_kernel(Writer<T> mask, std::int64_t samples, RandomTensor random,
                                   float probability, float scale) {
  for (std::int64_t i = thread_of_grid(); i < samples; i += threads_of_grid()) {
    float uniform[1];
    uniform_numbers<1>(random, i, uniform);
    store_one(mask, i, uniform[0] > probability ? scale : 0.0f);
  }
}

struct TimesMask {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] * x[1]; }
};

}  // namespace tidemark::cuda
