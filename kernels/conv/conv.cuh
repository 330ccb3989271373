// Convolution around a matrix product: patches to columns, columns back to images; and, where every
// channel is a group of its own, directly.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

struct ConvGeometry {
  std::int64_t images, height, width, kernel_height, kernel_width, out_height, out_width;
  std::int64_t stride, padding, groups;
  std::int64_t in_channels, out_channels;  ///< of one group

  std::int64_t taps() const { return in_channels * kernel_height * kernel_width; }
  std::int64_t positions() const { return out_height * out_width; }
};

struct ImageStrides {
  std::int64_t image, channel, row, column;
  __device__ std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    return n * image + c * channel + y * row + x * column;
  }
};

/// The matrix of patches: element (tap, position) with its two strides. Taps are neighbours where
/// patches do not overlap, since then neighbours in the image share a patch; else positions are.
struct Columns {
  std::int64_t tap_stride, position_stride;
};

struct Patch {
  std::int64_t image, channel, y, x;
};
/// Where in the images (tap, position) reads; may be in the padding.
__device__ inline Patch patch_at(const ConvGeometry& g, std::int64_t tap, std::int64_t position) {
  const std::int64_t kx = tap % g.kernel_width, rest = tap / g.kernel_width;
  const std::int64_t ox = position % g.out_width, row = position / g.out_width;
  return {row / g.out_height, rest / g.kernel_height,
          row % g.out_height * g.stride + rest % g.kernel_height - g.padding,
          ox * g.stride + kx - g.padding};
}
__device__ inline bool is_inside(const ConvGeometry& g, std::int64_t y, std::int64_t x) {
  return y >= 0 && y < g.height && x >= 0 && x < g.width;
}

/// x [images, channels of a group, …] → columns, positions side by side
template <typename T>
__global__ void columns_kernel(Reader<T> x, ImageStrides strides, ConvGeometry g, Writer<T> columns,
                               Columns layout) {
  const std::int64_t taps = g.in_channels * g.kernel_height * g.kernel_width;
  const std::int64_t positions = g.images * g.out_height * g.out_width;
  for (std::int64_t i = thread_of_grid(); i < taps * positions; i += threads_of_grid()) {
    const std::int64_t tap = i / positions, position = i % positions;
    const Patch p = patch_at(g, tap, position);
    const float value =
        is_inside(g, p.y, p.x) ? load_one(x, strides.at(p.image, p.channel, p.y, p.x)) : 0.0f;
    store_one(columns, tap * layout.tap_stride + position * layout.position_stride, value);
  }
}

/// The positions along one axis whose patch covers index i, for the tap that does it.
struct Covering {
  std::int64_t position;
  bool exists;
};
__device__ inline Covering covering(std::int64_t i, std::int64_t tap, std::int64_t stride,
                                    std::int64_t padding, std::int64_t count) {
  const std::int64_t shifted = i + padding - tap;
  const std::int64_t position = shifted / stride;
  return {position, shifted >= 0 && position * stride == shifted && position < count};
}

/// Columns' gradient → dx: each element gathers what its taps gave, in their order.
template <typename T>
__global__ void images_kernel(const float* columns, Columns layout, ConvGeometry g, Writer<T> dx,
                              ImageStrides strides) {
  const std::int64_t count = g.images * g.in_channels * g.height * g.width;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const std::int64_t x = i % g.width, row = i / g.width, y = row % g.height;
    const std::int64_t c = row / g.height % g.in_channels, n = row / g.height / g.in_channels;
    float sum = 0;
    for (std::int64_t ky = 0; ky < g.kernel_height; ++ky) {
      const Covering oy = covering(y, ky, g.stride, g.padding, g.out_height);
      if (!oy.exists) continue;
      for (std::int64_t kx = 0; kx < g.kernel_width; ++kx) {
        const Covering ox = covering(x, kx, g.stride, g.padding, g.out_width);
        if (!ox.exists) continue;
        const std::int64_t tap = (c * g.kernel_height + ky) * g.kernel_width + kx;
        const std::int64_t position = (n * g.out_height + oy.position) * g.out_width + ox.position;
        sum += columns[tap * layout.tap_stride + position * layout.position_stride];
      }
    }
    store_one(dx, strides.at(n, c, y, x), sum);
  }
}

// Where every channel is a group: one thread per result.

template <typename T>
__global__ void depthwise_forward_kernel(Reader<T> x, ImageStrides of_x, Reader<T> weight,
                                         ImageStrides of_weight, Reader<T> bias,
                                         std::int64_t bias_stride, ConvGeometry g, Writer<T> y,
                                         ImageStrides of_y) {
  const std::int64_t count = g.images * g.groups * g.out_height * g.out_width;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const std::int64_t ox = i % g.out_width, row = i / g.out_width, oy = row % g.out_height;
    const std::int64_t c = row / g.out_height % g.groups, n = row / g.out_height / g.groups;
    float sum = load_one(bias, c * bias_stride);
    for (std::int64_t ky = 0; ky < g.kernel_height; ++ky)
      for (std::int64_t kx = 0; kx < g.kernel_width; ++kx) {
        const std::int64_t iy = oy * g.stride + ky - g.padding, ix = ox * g.stride + kx - g.padding;
        if (is_inside(g, iy, ix))
          sum += load_one(x, of_x.at(n, c, iy, ix)) * load_one(weight, of_weight.at(c, 0, ky, kx));
      }
    store_one(y, of_y.at(n, c, oy, ox), sum);
  }
}

template <typename T>
__global__ void depthwise_input_kernel(Reader<T> dy, ImageStrides of_dy, Reader<T> weight,
                                       ImageStrides of_weight, ConvGeometry g, Writer<T> dx,
                                       ImageStrides of_dx) {
  const std::int64_t count = g.images * g.groups * g.height * g.width;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const std::int64_t x = i % g.width, row = i / g.width, y = row % g.height;
    const std::int64_t c = row / g.height % g.groups, n = row / g.height / g.groups;
    float sum = 0;
    for (std::int64_t ky = 0; ky < g.kernel_height; ++ky) {
      const Covering oy = covering(y, ky, g.stride, g.padding, g.out_height);
      if (!oy.exists) continue;
      for (std::int64_t kx = 0; kx < g.kernel_width; ++kx) {
        const Covering ox = covering(x, kx, g.stride, g.padding, g.out_width);
        if (!ox.exists) continue;
        sum += load_one(dy, of_dy.at(n, c, oy.position, ox.position)) *
               load_one(weight, of_weight.at(c, 0, ky, kx));
      }
    }
    store_one(dx, of_dx.at(n, c, y, x), sum);
  }
}

/// One block per weight: its threads share the images' positions.
template <typename T>
__global__ void depthwise_weight_kernel(Reader<T> x, ImageStrides of_x, Reader<T> dy,
                                        ImageStrides of_dy, ConvGeometry g, Writer<T> dw,
                                        ImageStrides of_dw) {
  const std::int64_t taps = g.kernel_height * g.kernel_width;
  const std::int64_t positions = g.images * g.out_height * g.out_width;
  for (std::int64_t i = blockIdx.x; i < g.groups * taps; i += gridDim.x) {
    const std::int64_t c = i / taps, ky = i % taps / g.kernel_width, kx = i % g.kernel_width;
    float sum = 0;
    for (std::int64_t p = threadIdx.x; p < positions; p += blockDim.x) {
      const Patch at = patch_at(g, ky * g.kernel_width + kx, p);
      if (!is_inside(g, at.y, at.x)) continue;
      const std::int64_t ox = p % g.out_width, oy = p / g.out_width % g.out_height;
      sum += load_one(x, of_x.at(at.image, c, at.y, at.x)) *
             load_one(dy, of_dy.at(at.image, c, oy, ox));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) store_one(dw, of_dw.at(c, 0, ky, kx), sum);
  }
}

struct PlusBias {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] + x[1]; }
};

}  // namespace tidemark::cuda
