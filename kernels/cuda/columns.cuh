// Rows, the last axis, by threads that have columns of them: a thread keeps its vectors of several
// rows in registers from the one read to the write. All their loads are under way before the first
// is used, 64 bytes per array, so that a third of a multiprocessor's threads is enough to hide the
// memory's latency; and the rows' sums share their barriers.
#pragma once

#include "kernels/cuda/reduce.cuh"

namespace tidemark::cuda {

/// Of a thread, per array: so many of a row, and of so many rows at once.
inline constexpr int vectors_under_way = 4;

inline constexpr unsigned most_column_threads = 512;

/// How rows are divided; `per_thread` = 0: they are too long.
struct ColumnPlan {
  int per_thread = 0;  ///< vectors of a row: 1, 2 or 4
  dim3 threads;

  /// Thread rows of one warp where that is enough for a row: no barrier.
  explicit ColumnPlan(std::int64_t vectors) {
    for (int each = 1; each <= vectors_under_way && per_thread == 0; each *= 2)
      if (vectors <= each * std::int64_t{most_column_threads}) per_thread = each;
    if (per_thread == 0) return;
    const std::int64_t wanted = std::max<std::int64_t>((vectors + per_thread - 1) / per_thread, 1);
    threads.x = static_cast<unsigned>((wanted + warp_size - 1) / warp_size * warp_size);
    threads.y = threads.x == warp_size ? 4 : 1;
  }
  /// So many that each thread row has some rows once.
  unsigned blocks(std::int64_t rows, int at_once) const {
    const std::int64_t of_block = std::int64_t{threads.y} * at_once;
    return static_cast<unsigned>((rows + of_block - 1) / of_block);
  }
};

/// Calls run(std::integral_constant<int, vectors per thread>), up to `most` of them.
template <int most, typename Run>
void with_columns(const ColumnPlan& plan, const Run& run) {
  if (plan.per_thread == 1) run(std::integral_constant<int, 1>{});
  if constexpr (most >= 2)
    if (plan.per_thread == 2) run(std::integral_constant<int, 2>{});
  if constexpr (most >= 4)
    if (plan.per_thread == 4) run(std::integral_constant<int, 4>{});
}

__device__ inline std::int64_t thread_row() {
  return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
}
__device__ inline std::int64_t thread_rows() { return std::int64_t{gridDim.x} * blockDim.y; }

/// Number j of this thread's vectors.
__device__ inline int column_vector(int j) {
  return static_cast<int>(threadIdx.x + static_cast<unsigned>(j) * blockDim.x);
}

/// This thread's vectors of the rows from `row` on; what is beyond their end or number is zero.
template <typename T, int V, int R, int P>
__device__ inline void load_rows(const T* data, std::int64_t stride, std::int64_t row,
                                 std::int64_t count, int vectors, Pack<T, V> (&out)[R][P]) {
  const T* from = data + row * stride;
  TIDEMARK_UNROLL
  for (int r = 0; r < R; ++r, from += stride) {
    TIDEMARK_UNROLL
    for (int j = 0; j < P; ++j) {
      out[r][j] = {};
      const int i = column_vector(j);
      if (row + r < count && i < vectors) out[r][j] = reinterpret_cast<const Pack<T, V>*>(from)[i];
    }
  }
}

/// Room for one of each warp's numbers.
template <int N>
using OfWarps = float[most_column_threads / warp_size][N];

struct Added {
  static constexpr float neutral = 0;
  __device__ static float of(float a, float b) { return a + b; }
};
/// Of a number and a NaN the number.
struct Larger {
  static constexpr float neutral = -INFINITY;
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

/// Several numbers joined over a row of threads, behind one barrier; every thread gets them. Two
/// rooms take turns: who writes into the one has been behind the barrier of the other, where nobody
/// comes who still reads the first.
template <typename Join, int N>
__device__ inline void joined_in_row(float (&value)[N], OfWarps<N> (&rooms)[2], unsigned& turn) {
  TIDEMARK_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    TIDEMARK_UNROLL
    for (int k = 0; k < N; ++k)
      value[k] = Join::of(value[k], __shfl_xor_sync(whole_warp, value[k], bits));
  }
  if (blockDim.x == warp_size) return;
  OfWarps<N>& of_warps = rooms[turn];
  turn = 1 - turn;
  if (threadIdx.x % warp_size == 0)
    for (int k = 0; k < N; ++k) of_warps[threadIdx.x / warp_size][k] = value[k];
  __syncthreads();
  TIDEMARK_UNROLL
  for (int k = 0; k < N; ++k) value[k] = Join::neutral;
  for (unsigned warp = 0; warp < blockDim.x / warp_size; ++warp) {
    TIDEMARK_UNROLL
    for (int k = 0; k < N; ++k) value[k] = Join::of(value[k], of_warps[warp][k]);
  }
}
template <int N>
__device__ inline void sums_of_row(float (&value)[N], OfWarps<N> (&rooms)[2], unsigned& turn) {
  joined_in_row<Added>(value, rooms, turn);
}

}  // namespace tidemark::cuda
