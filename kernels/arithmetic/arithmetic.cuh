// One number from one, two or three.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

struct DivideFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] / x[1]; }
};

/// {dy, a, b}
struct DivisorFunction {
  static constexpr int inputs = 3;
  __device__ float operator()(const float (&x)[3]) const { return -x[0] * x[1] / (x[2] * x[2]); }
};

struct DifferenceFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] - x[1]; }
};

struct LessOneFunction {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return x[0] - 1; }
};

struct NegativeFunction {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return -x[0]; }
};

}  // namespace tidemark::cuda
