// Maxima of windows, and where they were. Means are sums and need no kernel of their own.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

struct MeanTerm {
  static constexpr int inputs = 1;
  float factor;
  __device__ float operator()(const float (&x)[1]) const { return x[0] * factor; }
};

struct PoolGeometry {
  std::int64_t height, width, out_height, out_width, window, stride, padding;
};

struct Window {
  std::int64_t begin, end;
};
/// The part of window i that lies inside.
__device__ inline Window window_at(const PoolGeometry& g, std::int64_t i, std::int64_t extent) {
  const std::int64_t begin = i * g.stride - g.padding, end = begin + g.window;
  return {begin > 0 ? begin : 0, end < extent ? end : extent};
}
/// The windows that index i lies in.
__device__ inline Window windows_with(const PoolGeometry& g, std::int64_t i, std::int64_t count) {
  const std::int64_t padded = i + g.padding, before = padded - g.window;
  const std::int64_t begin = before < 0 ? 0 : before / g.stride + 1, end = padded / g.stride + 1;
  return {begin, end < count ? end : count};
}

/// Planes are numbered [n, c]; strides of x, y and the places within a plane are rows' and
/// columns'.
struct PlaneStrides {
  std::int64_t row, column;
};

/// One thread per maximum.
template <typename T>
__global__ void max_pool_forward_kernel(Reader<T> x, Writer<T> y, std::int64_t* places,
                                        PoolGeometry g, PlaneStrides of_x, PlaneStrides of_y,
                                        PlaneStrides of_places, Walk<3> planes) {
  const std::int64_t outputs = g.out_height * g.out_width;
  for (std::int64_t i = thread_of_grid(); i < planes.vectors * outputs; i += threads_of_grid()) {
    const auto at = planes.template place<1>(i / outputs);
    const std::int64_t row = i % outputs / g.out_width, column = i % g.out_width;
    const Window rows = window_at(g, row, g.height), columns = window_at(g, column, g.width);
    float best = -INFINITY;
    std::int64_t place = -1;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const float value = load_one(x, at.offset[0] + r * of_x.row + c * of_x.column);
        if (place >= 0 && !(value > best) && value == value) continue;
        best = value;
        place = r * g.width + c;
      }
    store_one(y, at.offset[1] + row * of_y.row + column * of_y.column, best);
    if (places != nullptr)
      places[at.offset[2] + row * of_places.row + column * of_places.column] = place;
  }
}

/// One thread per element of dx looks into the windows around it: no two threads add to the same
/// element, and each adds in the order of the windows.
template <typename T>
__global__ void max_pool_backward_kernel(Reader<T> dy, Writer<T> dx, const std::int64_t* places,
                                         PoolGeometry g, PlaneStrides of_dx, PlaneStrides of_dy,
                                         PlaneStrides of_places, Walk<3> planes) {
  const std::int64_t area = g.height * g.width;
  for (std::int64_t i = thread_of_grid(); i < planes.vectors * area; i += threads_of_grid()) {
    const auto at = planes.template place<1>(i / area);
    const std::int64_t place = i % area, row = place / g.width, column = place % g.width;
    const Window rows = windows_with(g, row, g.out_height);
    const Window columns = windows_with(g, column, g.out_width);
    float sum = 0;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = columns.begin; c < columns.end; ++c)
        if (places[at.offset[2] + r * of_places.row + c * of_places.column] == place)
          sum += load_one(dy, at.offset[1] + r * of_dy.row + c * of_dy.column);
    store_one(dx, at.offset[0] + row * of_dx.row + column * of_dx.column, sum);
  }
}

}  // namespace tidemark::cuda
