// Merges axes, copies runs where both sides are dense, and transposes in tiles of a cache line.
#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tidemark::cpu {
namespace {

using Axis = CopyAxes::Axis;

template <typename T>
void copy_run(T* to, const T* from, const Axis& axis) {
  if (axis.to == 1 && axis.from == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(axis.extent) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < axis.extent; ++i) to[i * axis.to] = from[i * axis.from];
}

/// A register of the smallest x86-64, and how many elements it holds.
template <typename T>
using Vector __attribute__((vector_size(16))) = T;
template <typename T>
constexpr std::int64_t width = 16 / sizeof(T);

// a0 b0 a1 b1 … of the lower or upper halves of two registers.
template <typename T, bool upper, std::size_t... I>
void interleave(Vector<T>& to, const Vector<T>& a, const Vector<T>& b, std::index_sequence<I...>) {
  constexpr std::size_t n = width<T>, begin = upper ? n / 2 : 0;
  to = __builtin_shufflevector(a, b, (begin + I / 2 + I % 2 * n)...);
}

// A square of `width` rows. Interleaving each row with the one half a square further down, log2 of
// the width times, transposes.
template <typename T>
void transpose_square(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride) {
  constexpr std::int64_t n = width<T>;
  constexpr std::make_index_sequence<static_cast<std::size_t>(n)> all;
  Vector<T> rows[n], next[n];
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * from_stride, 16);
  for (std::int64_t step = 1; step < n; step *= 2) {
    for (std::int64_t i = 0; i < n / 2; ++i) {
      interleave<T, false>(next[2 * i], rows[i], rows[i + n / 2], all);
      interleave<T, true>(next[2 * i + 1], rows[i], rows[i + n / 2], all);
    }
    std::copy_n(next, n, rows);
  }
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, &rows[i], 16);
}

// A transposition: `a` is the axis along which the target is dense, `b` that of the source. A tile
// is a cache line wide on both sides, so that each line is met once; tiles follow the source.
template <typename T>
void copy_tiles(T* to, const T* from, const Axis& a, const Axis& b) {
  constexpr std::int64_t tile = 64 / sizeof(T), n = width<T>;
  const auto copy_one_by_one = [&](std::int64_t i0, std::int64_t i1, std::int64_t j0,
                                   std::int64_t j1) {
    for (std::int64_t j = j0; j < j1; ++j)
      for (std::int64_t i = i0; i < i1; ++i)
        to[i * a.to + j * b.to] = from[i * a.from + j * b.from];
  };
  const bool is_dense = a.to == 1 && b.from == 1;
  const std::int64_t i_squares = is_dense ? a.extent / n * n : 0, j_squares = b.extent / n * n;
  for (std::int64_t i0 = 0; i0 < i_squares; i0 += tile)
    for (std::int64_t j0 = 0; j0 < j_squares; j0 += tile)
      for (std::int64_t j = j0; j < std::min(j_squares, j0 + tile); j += n)
        for (std::int64_t i = i0; i < std::min(i_squares, i0 + tile); i += n)
          transpose_square(to + i + j * b.to, b.to, from + i * a.from + j, a.from);
  copy_one_by_one(0, i_squares, j_squares, b.extent);
  for (std::int64_t i0 = i_squares; i0 < a.extent; i0 += tile)
    for (std::int64_t j0 = 0; j0 < b.extent; j0 += tile)
      copy_one_by_one(i0, std::min(a.extent, i0 + tile), j0, std::min(b.extent, j0 + tile));
}

template <typename T>
void copy_elements(T* to, const T* from, const CopyAxes& axes) {
  if (axes.rank == 0) return void(*to = *from);
  const Axis& last = axes.axes[axes.rank - 1];
  // Where the target's innermost axis is not the source's, the latter joins it.
  std::size_t other = axes.rank - 1;
  for (std::size_t k = 0; k + 1 < axes.rank; ++k)
    if (last.from != 1 && axes.axes[k].from == 1) other = k;
  std::array<std::int64_t, CopyAxes::most> index{};
  for (;;) {
    if (other + 1 == axes.rank)
      copy_run(to, from, last);
    else
      copy_tiles(to, from, last, axes.axes[other]);
    std::size_t k = axes.rank - 1;
    for (;;) {
      if (k == 0) return;
      if (--k == other) continue;
      const Axis& axis = axes.axes[k];
      to += axis.to, from += axis.from;
      if (++index[k] < axis.extent) break;
      to -= axis.to * axis.extent, from -= axis.from * axis.extent;
      index[k] = 0;
    }
  }
}

}  // namespace

void CopyAxes::simplify() {
  const auto begin = axes.begin(), end = begin + static_cast<std::ptrdiff_t>(rank);
  std::stable_sort(begin, end, [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::size_t count = 0;
  for (std::size_t k = 0; k < rank; ++k) {
    const Axis axis = axes[k];
    if (count > 0 && axes[count - 1].to == axis.to * axis.extent &&
        axes[count - 1].from == axis.from * axis.extent)
      axes[count - 1] = {axes[count - 1].extent * axis.extent, axis.to, axis.from};
    else
      axes[count++] = axis;
  }
  rank = count;
}

void strided_copy(std::byte* to, const std::byte* from, std::int64_t size, const CopyAxes& axes) {
  const auto as = [&]<typename T>(T) {
    copy_elements(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), axes);
  };
  switch (size) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      CHECK(size == 8);
      return as(std::uint64_t{});
  }
}

}  // namespace tidemark::cpu
