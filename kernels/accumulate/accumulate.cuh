// Sums and differences of whole tensors.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

struct SumFunction {
  static constexpr int inputs = 4;  // absent ones count as zero
  __device__ float operator()(const float (&x)[4]) const { return x[0] + x[1] + x[2] + x[3]; }
};

struct SubtractFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] - x[1]; }
};

}  // namespace tidemark::cuda
