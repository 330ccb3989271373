// Kernels that work on whole rows, the last axis: a warp or a block has a row to itself and keeps
// it in shared memory between passes, so that memory sees one read and one write. Rows that are too
// long for that are read again, mostly from the second-level cache.
#pragma once

#include "kernels/cuda/reduce.cuh"

namespace tidemark::cuda {

/// The rows of `N` arrays: where each begins, and the step along it.
template <int N>
struct Rows {
  Walk<N> outer;
  std::int64_t count = 1, width = 1;
  std::int64_t step[N] = {};
};

/// How a row kernel is launched.
struct RowLaunch {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
  bool is_cached = false;  ///< rows fit into shared memory
  bool has_vectors = false;
};

/// Up to here one warp has a row: shuffles only, no barrier.
inline constexpr std::int64_t widest_of_warp = 1024;
inline constexpr unsigned warps_per_block = 4;

/// Arrays spread over `shape`. `caches` is how many rows in fp32 the kernel keeps.
template <int N>
RowLaunch plan_rows(const Launch& launch, const Shape& shape,
                    const std::array<const Array*, static_cast<std::size_t>(N)>& arrays, int caches,
                    int vector, Rows<N>& rows) {
  const Axes<N> axes = axes_over<N>(shape, arrays);
  Axes<N> outer;
  for (int i = 0; i + 1 < axes.rank; ++i) outer.add(axes, i);
  outer = merged(outer, 0);
  rows.count = outer.count();
  rows.width = shape.back();
  for (int k = 0; k < N; ++k) rows.step[k] = rows.width == 1 ? 1 : axes.stride[axes.rank - 1][k];
  rows.outer = Walk<N>(outer, 1);

  RowLaunch plan;
  outer.add(axes, axes.rank - 1);
  plan.has_vectors = is_vectorizable<N>(outer, arrays, vector);
  const bool of_warp = rows.width <= widest_of_warp;
  plan.threads = of_warp ? dim3(warp_size, warps_per_block) : dim3(usual_threads);
  const std::int64_t per_block = plan.threads.y;
  plan.blocks = dim3(blocks_for(launch, (rows.count + per_block - 1) / per_block, 1));
  const std::int64_t padded = (rows.width + vector - 1) / vector * vector;
  const std::int64_t bytes = per_block * caches * padded * static_cast<std::int64_t>(sizeof(float));
  // Partial results of a block's warps lie in shared memory, too, and extremes of what is watched.
  plan.is_cached = bytes + 1024 <= shared_limit;
  if (plan.is_cached) plan.shared_bytes = static_cast<std::size_t>(bytes);
  return plan;
}

/// A kept row. Every thread reads what it wrote itself: no barrier. Groups of four floats, each of
/// them apart, so that threads side by side use different banks.
template <int V>
struct RowCache {
  float* data;
  std::int64_t vectors;

  __device__ void put(std::int64_t vector, const float (&x)[V]) const {
    if constexpr (V == 1)
      data[vector] = x[0];
    else
      for (int part = 0; part < V / 4; ++part) {
        Pack<float, 4> pack;
        for (int e = 0; e < 4; ++e) pack.values[e] = x[part * 4 + e];
        *reinterpret_cast<Pack<float, 4>*>(data + 4 * (part * vectors + vector)) = pack;
      }
  }
  __device__ void take(std::int64_t vector, float (&x)[V]) const {
    if constexpr (V == 1)
      x[0] = data[vector];
    else
      for (int part = 0; part < V / 4; ++part) {
        const auto pack =
            *reinterpret_cast<const Pack<float, 4>*>(data + 4 * (part * vectors + vector));
        for (int e = 0; e < 4; ++e) x[part * 4 + e] = pack.values[e];
      }
  }
};

/// One array's row as a kernel's passes see it. After the first pass it comes from the cache.
template <typename T, int V, bool is_cached>
struct RowReader {
  Reader<T> from;
  std::int64_t offset, step, width;
  RowCache<V> cache;

  __device__ int valid(std::int64_t vector) const {
    const std::int64_t left = width - vector * V;
    return left < V ? static_cast<int>(left) : V;
  }
  __device__ void first(std::int64_t vector, float (&x)[V]) const {
    load<V>(from, offset + vector * V * step, step, valid(vector), x);
    if constexpr (is_cached) cache.put(vector, x);
  }
  __device__ void again(std::int64_t vector, float (&x)[V]) const {
    if constexpr (is_cached)
      cache.take(vector, x);
    else
      load<V>(from, offset + vector * V * step, step, valid(vector), x);
  }
};

/// The rows that a block's thread row works on, one after the other. Blocks of one thread row go
/// through the loop together, as their barriers need.
__device__ inline std::int64_t first_row() {
  return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
}
__device__ inline std::int64_t row_stride() { return std::int64_t{gridDim.x} * blockDim.y; }

/// Cache number `which` of `caches` of this thread row.
template <int V>
__device__ inline RowCache<V> row_cache(float* shared, std::int64_t width, int caches, int which) {
  const std::int64_t vectors = (width + V - 1) / V;
  const std::int64_t row = std::int64_t{threadIdx.y} * caches + which;
  return {shared + row * vectors * V, vectors};
}

}  // namespace tidemark::cuda
