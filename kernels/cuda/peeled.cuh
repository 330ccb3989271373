// Rows that begin anywhere, in vectors all the same: the whole vectors of memory that lie within a
// row are its body; the elements before and behind it are its ends, of which a thread has one at
// most.
#pragma once

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"

namespace tidemark::cuda {

/// Where the parts of a row of `width` lie: [0, head), `vectors` whole ones, [tail, width).
template <int V>
struct Peel {
  int head, vectors, tail, width;

  template <typename T>
  __device__ Peel(const T* row, std::int64_t width_) : width(static_cast<int>(width_)) {
    const auto place = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % V);
    head = (V - place) % V;
    head = head < width ? head : width;
    vectors = (width - head) / V;
    tail = head + vectors * V;
  }
  /// Of this thread; none: −1.
  __device__ int end_element() const {
    const auto t = static_cast<int>(threadIdx.x);
    if (t < V) return t < head ? t : -1;
    return t < 2 * V && tail + t - V < width ? tail + t - V : -1;
  }
};
static_assert(warp_size >= 2 * 8, "each end's elements have threads");

/// What a thread has of a row: P vectors of the body and one element of the ends, numbered from 0
/// to P · V. What it does not have is `other`.
template <typename T, int V, int P>
struct PeeledPart {
  static constexpr int size = P * V + 1;
  Pack<T, V> body[P];
  T end;

  __device__ void fill(T other) {
    TIDEMARK_UNROLL
    for (int j = 0; j < P; ++j) {
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) body[j].values[e] = other;
    }
    end = other;
  }
  /// Vectors `first`, `first + distance`, … of the body.
  __device__ void load_body(const T* row, const Peel<V>& peel, int first, int distance) {
    const auto* const from = reinterpret_cast<const Pack<T, V>*>(row + peel.head);
    TIDEMARK_UNROLL
    for (int j = 0; j < P; ++j)
      if (first + j * distance < peel.vectors) body[j] = from[first + j * distance];
  }
  __device__ void load_end(const T* row, const Peel<V>& peel) {
    if (const int at = peel.end_element(); at >= 0) end = row[at];
  }
  /// Element `k`, which is known at compile time.
  __device__ float at(int k) const {
    return k < P * V ? value_in(body[k < P * V ? k / V : 0], k % V) : to_fp32(end);
  }
};

template <typename T, int V>
__device__ inline void store_body(T* row, const Peel<V>& peel, int j, const float* values) {
  if (j >= peel.vectors) return;
  float own[V];
  TIDEMARK_UNROLL
  for (int e = 0; e < V; ++e) own[e] = values[e];
  reinterpret_cast<Pack<T, V>*>(row + peel.head)[j] = packed<T>(own);
}

template <typename T, int V>
__device__ inline void store_end(T* row, const Peel<V>& peel, float value) {
  if (const int at = peel.end_element(); at >= 0) row[at] = rounded_to<T>(value);
}

/// True if rows are one behind the other, their elements side by side, and each row begins at the
/// same place of a vector in every array.
template <int N>
bool lies_in_peeled_rows(const Rows<N>& rows, const std::array<const Array*, N>& arrays) {
  if (rows.outer.rank > 0 || rows.width > (std::int64_t{1} << 30)) return false;
  const auto address = [&](std::size_t k, std::int64_t row) {
    return reinterpret_cast<std::intptr_t>(arrays[k]->data) +
           row * rows.outer.inner_stride[k] * size_of(arrays[k]->dtype);
  };
  for (std::size_t k = 0; k < N; ++k) {
    if (rows.step[k] != 1 || address(k, 0) % size_of(arrays[k]->dtype) != 0) return false;
    for (const std::int64_t row : {0, 1})
      if ((address(k, row) - address(0, row)) % 16 != 0) return false;
  }
  return true;
}

}  // namespace tidemark::cuda
