// A thread per number of what is made, which goes through all that it is a sum of, in order.
#pragma once

#include "kernels/cuda/indices.cuh"

namespace tidemark::cuda {

struct LineGeometry {
  std::int64_t images, in, out, length, out_length, taps, stride, padding;
  std::int64_t x[3], w[3], y[3];  ///< strides

  __device__ std::int64_t place(std::int64_t i, std::int64_t tap) const {
    return i * stride + tap - padding;
  }
};

template <typename T>
__global__ void conv1d_kernel(Reader<T> x, Reader<T> weight, Reader<AnyFloat> bias,
                              std::int64_t bias_stride, Writer<T> y, LineGeometry g) {
  for (std::int64_t e = thread_of_grid(); e < g.images * g.out * g.out_length;
       e += threads_of_grid()) {
    const std::int64_t i = e % g.out_length, o = e / g.out_length % g.out;
    const std::int64_t n = e / g.out_length / g.out;
    float sum = 0;
    for (std::int64_t c = 0; c < g.in; ++c)
      for (std::int64_t u = 0; u < g.taps; ++u) {
        const std::int64_t at = g.place(i, u);
        if (at >= 0 && at < g.length)
          sum += load_one(x, n * g.x[0] + c * g.x[1] + at * g.x[2]) *
                 load_one(weight, o * g.w[0] + c * g.w[1] + u * g.w[2]);
      }
    if (bias.data != nullptr) sum += load_one(bias, o * bias_stride);
    store_one(y, n * g.y[0] + o * g.y[1] + i * g.y[2], sum);
  }
}

template <typename T>
__global__ void conv1d_dx_kernel(Reader<T> dy, Reader<T> weight, Writer<T> dx, LineGeometry g) {
  for (std::int64_t e = thread_of_grid(); e < g.images * g.in * g.length; e += threads_of_grid()) {
    const std::int64_t at = e % g.length, c = e / g.length % g.in, n = e / g.length / g.in;
    float sum = 0;
    for (std::int64_t o = 0; o < g.out; ++o)
      for (std::int64_t u = 0; u < g.taps; ++u) {
        const std::int64_t from = at + g.padding - u, i = from / g.stride;
        if (from >= 0 && from % g.stride == 0 && i < g.out_length)
          sum += load_one(dy, n * g.y[0] + o * g.y[1] + i * g.y[2]) *
                 load_one(weight, o * g.w[0] + c * g.w[1] + u * g.w[2]);
      }
    store_one(dx, n * g.x[0] + c * g.x[1] + at * g.x[2], sum);
  }
}

template <typename T>
__global__ void conv1d_dw_kernel(Reader<T> dy, Reader<T> x, Writer<T> dw, LineGeometry g) {
  for (std::int64_t e = thread_of_grid(); e < g.out * g.in * g.taps; e += threads_of_grid()) {
    const std::int64_t u = e % g.taps, c = e / g.taps % g.in, o = e / g.taps / g.in;
    float sum = 0;
    for (std::int64_t n = 0; n < g.images; ++n)
      for (std::int64_t i = 0; i < g.out_length; ++i) {
        const std::int64_t at = g.place(i, u);
        if (at >= 0 && at < g.length)
          sum += load_one(dy, n * g.y[0] + o * g.y[1] + i * g.y[2]) *
                 load_one(x, n * g.x[0] + c * g.x[1] + at * g.x[2]);
      }
    store_one(dw, o * g.w[0] + c * g.w[1] + u * g.w[2], sum);
  }
}

}  // namespace tidemark::cuda
