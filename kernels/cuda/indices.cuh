// Places of elements that a kernel looks up: a walk in row-major order over arrays that agree in
// their axes, and whole numbers read from there.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

/// Element by element, in row-major order of `shape`; arrays with fewer or shorter axes repeat.
template <int N>
Walk<N> walk_in_order(const Shape& shape, const std::array<const Array*, N>& arrays) {
  Axes<N> axes;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    std::array<std::int64_t, N> strides{};
    for (std::size_t k = 0; k < N; ++k) strides[k] = spread_stride(shape, *arrays[k], i);
    axes.add(shape[i], strides);
  }
  return Walk<N>(axes, 1);
}

/// What is wrong with the data cannot be told from a kernel: it stops the stream.
__device__ inline std::int64_t checked_place(std::int64_t place, std::int64_t end) {
  if (place < 0 || place >= end) __trap();
  return place;
}

inline const std::int64_t* wholes(const Array& array) {
  return elements<const std::int64_t>(array);
}

}  // namespace tidemark::cuda
