// A thread per element of a weight that is decoded, a warp per row of x that becomes codes.
#pragma once

#include "kernels/cuda/gradients.cuh"
#include "kernels/stored_linear/stored_weight.h"

namespace tidemark::cuda {

template <typename T>
__global__ void decode_four_bits_kernel(FourBitWeight weight, T* to, std::int64_t count) {
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid())
    to[i] = rounded_to<T>(weight(i));
}

/// Without factors: the codes as numbers.
template <typename T>
__global__ void decode_int8_kernel(const std::uint8_t* codes, const float* factors, T* to,
                                   std::int64_t count, std::int64_t in) {
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const float code = int8_code(codes[i]);
    to[i] = rounded_to<T>(factors == nullptr ? code : code * factors[i / in] / int8_levels);
  }
}

__device__ inline float as_half(float x) { return to_fp32(rounded_to<Float16>(x)); }

/// Codes are whole numbers up to 127, which every dtype holds exactly.
template <typename T>
__global__ void code_rows_kernel(Reader<AnyFloat> x, T* codes, float* largest, std::int64_t rows,
                                 std::int64_t n, std::int64_t row_stride,
                                 std::int64_t column_stride) {
  const unsigned lane = threadIdx.x % warp_size, warps = blockDim.x / warp_size;
  for (std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_size; row < rows;
       row += std::int64_t{gridDim.x} * warps) {
    float most = 0;
    for (std::int64_t k = lane; k < n; k += warp_size) {
      const float size = fabsf(as_half(load_one(x, row * row_stride + k * column_stride)));
      most = size > most ? size : most;
    }
    for (int bits = 1; bits < static_cast<int>(warp_size); bits *= 2) {
      const float other = __shfl_xor_sync(whole_warp, most, bits);
      most = other > most ? other : most;
    }
    const float scale = most > 0 ? int8_levels / most : 0;
    for (std::int64_t k = lane; k < n; k += warp_size)
      codes[row * n + k] =
          rounded_to<T>(rintf(as_half(load_one(x, row * row_stride + k * column_stride)) * scale));
    if (lane == 0) largest[row] = most;
  }
}

/// {Σ codes · codes, max|x| of the row, the column's factor, bias}
struct ScaleCodesFunction {
  static constexpr int inputs = 4;
  __device__ float operator()(const float (&x)[4]) const {
    return as_half(x[0] * (x[1] * x[2] / (int8_levels * int8_levels)) + x[3]);
  }
};

}  // namespace tidemark::cuda
