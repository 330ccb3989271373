// Sums and differences of whole tensors.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

template <int N>
struct SumFunction {
  static constexpr int inputs = N;  // absent ones count as zero
  __device__ float operator()(const float (&x)[N]) const {
    float sum = x[0];
    for (int k = 1; k < N; ++k) sum += x[k];
    return sum;
  }
};

struct SubtractFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] - x[1]; }
};

}  // namespace tidemark::cuda
