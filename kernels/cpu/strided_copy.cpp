#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "traces/error.h"

namespace tidemark::cpu {
namespace {

using Axis = CopyAxes::Axis;

// Both sides of a square tile stay in the first-level cache: 64 rows of a cache line each.
constexpr std::int64_t tile = 64;

template <typename T>
void copy_run(T* to, const T* from, const Axis& axis) {
  if (axis.to == 1 && axis.from == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(axis.extent) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < axis.extent; ++i) to[i * axis.to] = from[i * axis.from];
}

// A transposition: `a` is the axis along which the target is dense, `b` that of the source.
template <typename T>
void copy_tiles(T* to, const T* from, const Axis& a, const Axis& b) {
  for (std::int64_t j0 = 0; j0 < b.extent; j0 += tile)
    for (std::int64_t i0 = 0; i0 < a.extent; i0 += tile) {
      const std::int64_t i1 = std::min(a.extent, i0 + tile), j1 = std::min(b.extent, j0 + tile);
      for (std::int64_t j = j0; j < j1; ++j)
        for (std::int64_t i = i0; i < i1; ++i)
          to[i * a.to + j * b.to] = from[i * a.from + j * b.from];
    }
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
