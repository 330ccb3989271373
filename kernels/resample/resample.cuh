// A thread per element of what is written. Back, it goes through all that may have read its own, so
// that each sum has an order.
#pragma once

#include "kernels/cuda/indices.cuh"
#include "kernels/resample/taps.h"

namespace tidemark::cuda {

/// Of the planes that are resampled, and of what is made of them; strides of the side that is read.
struct ResampleGeometry {
  Resampling kind;
  std::int64_t height, width, out_height, out_width;
  std::int64_t row_stride, column_stride;
};

/// Walk: y, the plane of x.
template <typename T>
__global__ void resample_kernel(Reader<T> x, Writer<T> y, Walk<2> walk, ResampleGeometry g) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    const Taps rows = taps_of(g.kind, i / g.out_width % g.out_height, g.height, g.out_height);
    const Taps columns = taps_of(g.kind, i % g.out_width, g.width, g.out_width);
    float sum = 0;
    for (std::int64_t s = 0; s < rows.count; ++s)
      for (std::int64_t t = 0; t < columns.count; ++t)
        sum += rows.weight(g.kind, s) * columns.weight(g.kind, t) *
               load_one(x, at.offset[1] + rows.index(s, g.height) * g.row_stride +
                               columns.index(t, g.width) * g.column_stride);
    store_one(y, at.offset[0], sum);
  }
}

/// What element i of m takes of element u of n: near an end several taps are held there.
__device__ inline float share_of(Resampling kind, std::int64_t i, std::int64_t u, std::int64_t n,
                                 std::int64_t m) {
  const Taps taps = taps_of(kind, i, n, m);
  float share = 0;
  for (std::int64_t t = 0; t < taps.count; ++t)
    if (taps.index(t, n) == u) share += taps.weight(kind, t);
  return share;
}

/// Walk: dx, the plane of dy.
template <typename T>
__global__ void resample_backward_kernel(Reader<T> dy, Writer<T> dx, Walk<2> walk,
                                         ResampleGeometry g) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    const std::int64_t u = i / g.width % g.height, v = i % g.width;
    const Readers rows = readers_of(g.kind, u, g.height, g.out_height);
    const Readers columns = readers_of(g.kind, v, g.width, g.out_width);
    float sum = 0;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      const float of_row = share_of(g.kind, r, u, g.height, g.out_height);
      if (of_row == 0) continue;
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const float share = share_of(g.kind, c, v, g.width, g.out_width);
        if (share != 0)
          sum +=
              of_row * share * load_one(dy, at.offset[1] + r * g.row_stride + c * g.column_stride);
      }
    }
    store_one(dx, at.offset[0], sum);
  }
}

}  // namespace tidemark::cuda
