// One number from one or two: what the elementwise ops compute.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

struct AddFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] + x[1]; }
};

struct MulFunction {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const { return x[0] * x[1]; }
};

struct ScaleFunction {
  static constexpr int inputs = 1;
  float factor;
  __device__ float operator()(const float (&x)[1]) const { return x[0] * factor; }
};

struct AverageFunction {
  static constexpr int inputs = 8;  // absent ones count as zero
  float count;
  __device__ float operator()(const float (&x)[8]) const {
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += x[k];
    return sum / count;
  }
};

__global__ void set_double_kernel(double* data, double value) { *data = value; }

}  // namespace tidemark::cuda
