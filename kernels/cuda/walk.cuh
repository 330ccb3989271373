// How a kernel finds the elements of several arrays that it walks together: axes that all arrays
// cross without a gap are merged, the rest is divided out by multiplication.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "base/error.h"
#include "kernels/cuda/device.cuh"

namespace tidemark::cuda {

/// Division by a number that is the same for the whole kernel. Up to 2^31 as Granlund and
/// Montgomery (PLDI 1994) do it: high half of a product, sum, shift; beyond, the slow one.
struct Divisor {
  std::int64_t value = 1;
  unsigned magic = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : value(divisor) {
    if (divisor >= std::int64_t{1} << 31) return;
    while ((std::int64_t{1} << shift) < divisor) ++shift;
    const std::uint64_t power = std::uint64_t{1} << 32;
    const auto d = static_cast<std::uint64_t>(divisor);
    magic = static_cast<unsigned>(power * ((std::uint64_t{1} << shift) - d) / d + 1);
  }

  /// The quotient; `n` becomes the remainder.
  __device__ std::int64_t divide(std::int64_t& n) const {
    std::int64_t quotient;
    if ((n | value) < std::int64_t{1} << 31) {
      const auto small = static_cast<unsigned>(n);
      quotient = (__umulhi(small, magic) + small) >> shift;
    } else {
      quotient = n / value;
    }
    n -= quotient * value;
    return quotient;
  }
};

/// Axes that `N` arrays are walked along, and what a step along each means for each array.
template <int N>
struct Axes {
  // Six, one more where the first axis repeats a smaller one, and parts of axes that move.
  static constexpr int most = 10;
  int rank = 0;
  std::int64_t extent[most] = {};
  std::int64_t stride[most][N] = {};

  void add(std::int64_t size, const std::array<std::int64_t, N>& strides) {
    CHECK(rank < most);
    extent[rank] = size;
    std::copy(strides.begin(), strides.end(), stride[rank]);
    ++rank;
  }
  void add(const Axes& other, int axis) {
    CHECK(rank < most);
    extent[rank] = other.extent[axis];
    std::copy(other.stride[axis], other.stride[axis] + N, stride[rank]);
    ++rank;
  }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= extent[i];
    return product;
  }
};

/// Stride of `small` along axis `axis` of a walk over `large`, which has at least as many axes: 0
/// where it spreads.
inline std::int64_t spread_stride(const Shape& large, const Array& small, std::size_t axis) {
  const std::size_t missing = large.rank() - small.shape.rank();
  if (axis < missing || small.shape[axis - missing] == 1) return 0;
  return small.strides[axis - missing];
}

/// The axes of `large` along which all arrays are walked; arrays with fewer or shorter axes spread.
/// A shorter first axis repeats: windows of a batch share one mask per window of an image.
template <int N>
Axes<N> axes_over(const Shape& large, const std::array<const Array*, N>& arrays) {
  Axes<N> axes;
  for (std::size_t i = 0; i < large.rank(); ++i) {
    std::array<std::int64_t, N> strides{}, outer{};
    std::int64_t period = large[i];
    for (std::size_t k = 0; k < N; ++k) {
      strides[k] = spread_stride(large, *arrays[k], i);
      const bool has_axis = arrays[k]->shape.rank() == large.rank();
      if (i == 0 && has_axis && arrays[k]->shape[0] != 1)
        period = std::min(period, arrays[k]->shape[0]);
    }
    for (std::size_t k = 0; k < N; ++k) {
      const bool repeats = i == 0 && arrays[k]->shape.rank() == large.rank() &&
                           arrays[k]->shape[0] == period && period != large[0];
      outer[k] = repeats ? 0 : strides[k] * period;
    }
    if (period != large[i]) axes.add(large[i] / period, outer);
    axes.add(period, strides);
  }
  return axes;
}

/// Orders the axes as array `leader` lies in memory, and joins those that no array has a gap at.
template <int N>
Axes<N> merged(const Axes<N>& axes, int leader) {
  std::array<int, Axes<N>::most> order{};
  int rank = 0;
  for (int i = 0; i < axes.rank; ++i)
    if (axes.extent[i] != 1) order[static_cast<std::size_t>(rank++)] = i;
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](int a, int b) { return axes.stride[a][leader] > axes.stride[b][leader]; });
  Axes<N> result;
  for (int r = 0; r < rank; ++r) {
    const int i = order[static_cast<std::size_t>(r)], last = result.rank - 1;
    bool joins = last >= 0;
    for (int k = 0; joins && k < N; ++k)
      joins = result.stride[last][k] == axes.stride[i][k] * axes.extent[i];
    if (!joins) {
      result.add(axes, i);
      continue;
    }
    result.extent[last] *= axes.extent[i];
    std::copy(axes.stride[i], axes.stride[i] + N, result.stride[last]);
  }
  return result;
}

/// Where a thread works: for each array the offset of the first of `valid` elements.
template <int N>
struct Place {
  std::int64_t offset[N];
  int valid;
};

/// The elements of `N` arrays, in vectors along an inner axis; numbered row by row.
template <int N>
struct Walk {
  int rank = 0;            ///< of the outer axes
  std::int64_t inner = 1;  ///< elements along the inner axis
  std::int64_t inner_stride[N] = {};
  std::int64_t vectors = 0;
  Divisor vectors_per_row;
  Divisor extent[Axes<N>::most];
  std::int64_t stride[Axes<N>::most][N] = {};

  Walk() = default;
  /// The last axis is the inner one.
  Walk(const Axes<N>& axes, int vector_size) {
    if (axes.rank > 0) {
      inner = axes.extent[axes.rank - 1];
      for (int k = 0; k < N; ++k) inner_stride[k] = axes.stride[axes.rank - 1][k];
    }
    rank = std::max(axes.rank - 1, 0);
    const std::int64_t per_row = (inner + vector_size - 1) / vector_size;
    vectors_per_row = Divisor(per_row);
    vectors = per_row;
    for (int i = 0; i < rank; ++i) {
      extent[i] = Divisor(axes.extent[i]);
      vectors *= axes.extent[i];
      for (int k = 0; k < N; ++k) stride[i][k] = axes.stride[i][k];
    }
  }
  __device__ std::int64_t rows() const { return vectors / vectors_per_row.value; }

  __device__ void add_row(std::int64_t row, std::int64_t (&offset)[N]) const {
    for (int i = rank - 1; i > 0; --i) {
      const std::int64_t index = rest_after(row, extent[i]);
      for (int k = 0; k < N; ++k) offset[k] += index * stride[i][k];
    }
    if (rank > 0)
      for (int k = 0; k < N; ++k) offset[k] += row * stride[0][k];
  }

  template <int V>
  __device__ Place<N> place(std::int64_t vector) const {
    Place<N> at;
    std::int64_t column = vector;
    const std::int64_t row = rank == 0 ? 0 : vectors_per_row.divide(column);
    column *= V;
    for (int k = 0; k < N; ++k) at.offset[k] = column * inner_stride[k];
    if (rank > 0) add_row(row, at.offset);
    at.valid = inner - column < V ? static_cast<int>(inner - column) : V;
    return at;
  }

 private:
  // The remainder; `row` becomes the quotient.
  __device__ static std::int64_t rest_after(std::int64_t& row, const Divisor& by) {
    std::int64_t rest = row;
    row = by.divide(rest);
    return rest;
  }
};

/// True if every array can be read in vectors of `size` elements: its elements of a row lie side by
/// side, or are one and the same, and each vector begins at a multiple of its size.
template <int N>
bool is_vectorizable(const Axes<N>& axes, const std::array<const Array*, N>& arrays, int size) {
  if (axes.rank == 0 || axes.extent[axes.rank - 1] < size) return false;
  for (int k = 0; k < N; ++k) {
    const Array& array = *arrays[static_cast<std::size_t>(k)];
    const std::int64_t inner = axes.stride[axes.rank - 1][k];
    if (inner != 0 && inner != 1) return false;
    if (inner == 0 || array.data == nullptr) continue;
    const std::int64_t bytes = std::min<std::int64_t>(size * size_of(array.dtype), 16);
    if (reinterpret_cast<std::uintptr_t>(array.data) % static_cast<std::uintptr_t>(bytes) != 0)
      return false;
    for (int i = 0; i + 1 < axes.rank; ++i)
      if (axes.stride[i][k] * size_of(array.dtype) % bytes != 0) return false;
  }
  return true;
}

}  // namespace tidemark::cuda
