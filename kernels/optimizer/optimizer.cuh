// One step of the optimizer: every number is read and written once. A network has hundreds of
// parameters, most of them biases and norms' weights: one launch has as many as its arguments hold.
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

/// A parameter whose arrays are dense, of one dtype, and begin at multiples of 16 bytes; its last
/// vector may be a part of one.
template <typename T>
struct AdamParameter {
  T* parameter;
  const T* gradient;
  T *first, *second;  ///< moments
  std::int64_t count;
  unsigned first_block;  ///< of those that work on it
};

/// Arguments of a kernel have 4 KB; 80 parameters of 48 bytes leave some.
inline constexpr int parameters_per_launch = 80;

template <typename T>
struct AdamParameters {
  AdamParameter<T> of[parameters_per_launch];
  int count = 0;
  unsigned blocks = 0;
};

/// Vectors per thread of a block: with four loads each enough to hide the memory's latency, and
/// small biases still have a block of their own.
inline constexpr int adam_vectors = 2;
template <typename T>
inline constexpr std::int64_t adam_block =
    std::int64_t{usual_threads} * adam_vectors* vector_size<T>;

template <typename T>
__global__ void adam_kernel(AdamStep step, AdamParameters<T> parameters) {
  constexpr int V = vector_size<T>;
  int low = 0, high = parameters.count;  // the last one whose first block is not behind this
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (parameters.of[middle].first_block <= blockIdx.x ? low : high) = middle;
  }
  const AdamParameter<T>& p = parameters.of[low];
  const std::int64_t begin = std::int64_t{blockIdx.x - p.first_block} * adam_block<T>;
  for (int u = 0; u < adam_vectors; ++u) {
    const std::int64_t at = begin + (std::int64_t{u} * usual_threads + threadIdx.x) * V;
    const std::int64_t left = p.count - at;
    if (left <= 0) return;
    const int valid = left < V ? static_cast<int>(left) : V;
    float in[4][V], out[3][V];
    load_of<V>(static_cast<const T*>(p.parameter), at, 1, valid, in[0]);
    load_of<V>(p.gradient, at, 1, valid, in[1]);
    load_of<V>(static_cast<const T*>(p.first), at, 1, valid, in[2]);
    load_of<V>(static_cast<const T*>(p.second), at, 1, valid, in[3]);
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) {
      const float x[4] = {in[0][e], in[1][e], in[2][e], in[3][e]};
      float y[3];
      step(x, y);
      out[0][e] = y[0], out[1][e] = y[1], out[2][e] = y[2];
    }
    store_to<V>(p.parameter, at, 1, valid, out[0]);
    store_to<V>(p.first, at, 1, valid, out[1]);
    store_to<V>(p.second, at, 1, valid, out[2]);
  }
}

}  // namespace tidemark::cuda
