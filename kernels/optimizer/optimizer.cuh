// One step of the optimizer: every number is read and written once.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

/// The factors of one AdamW step, computed once in fp64.
struct AdamFactors {
  float decay, beta1, fresh1, beta2, fresh2, step, root, epsilon;
};

/// {p, g, m, v} → {p, m, v}
struct AdamStep {
  static constexpr int inputs = 4, outputs = 3;
  AdamFactors f;
  __device__ void operator()(const float (&in)[4], float (&out)[3]) const {
    const float g = in[1];
    const float m = f.beta1 * in[2] + f.fresh1 * g;
    const float v = f.beta2 * in[3] + f.fresh2 * (g * g);
    out[0] = f.decay * in[0] - f.step * m / (sqrtf(v) * f.root + f.epsilon);
    out[1] = m;
    out[2] = v;
  }
};

/// {p, g} → p
struct SgdStep {
  static constexpr int inputs = 2;
  float rate, decay;
  __device__ float operator()(const float (&in)[2]) const {
    return in[0] - rate * (in[1] + decay * in[0]);
  }
};

}  // namespace tidemark::cuda
