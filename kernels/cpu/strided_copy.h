// Copies elements between two layouts, by walking axes that both have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidemark::cpu {

/// The axes of a copy: extents, and strides in elements on both sides.
struct CopyAxes {
  struct Axis {
    std::int64_t extent, to, from;
  };
  // A rearrangement has at most two factors for each of its six axes and both sides.
  static constexpr std::size_t most = 24;

  void add(std::int64_t extent, std::int64_t to, std::int64_t from) {
    if (extent != 1) axes[rank++] = {extent, to, from};
  }
  /// Sorts the axes so that `to` is written in order, and merges neighbours.
  void simplify();

  std::array<Axis, most> axes{};
  std::size_t rank = 0;
};

/// Elements of `size` bytes: 1, 2, 4 or 8. The axes are simplified.
void strided_copy(std::byte* to, const std::byte* from, std::int64_t size, const CopyAxes& axes);

}  // namespace tidemark::cpu
