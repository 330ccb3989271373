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
    out[0] = f.decay * in[0] -
             approximate_quotient(f.step * m, approximate_root(v) * f.root + f.epsilon);
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

/// Vectors per thread of a block, all of whose loads are under way before the first is used: 128
/// bytes, of which 256 threads of a multiprocessor are enough to hide the memory's latency. Small
/// biases still have a block of their own.
inline constexpr int adam_vectors = 2;
template <typename T>
inline constexpr std::int64_t adam_block =
    std::int64_t{usual_threads} * adam_vectors* vector_size<T>;

/// Vectors at `at`, `at + distance`, …, all of which exist.
template <typename T>
__device__ inline void adam_whole(const AdamStep& step, const AdamParameter<T>& p, std::int64_t at,
                                  std::int64_t distance) {
  constexpr int V = vector_size<T>;
  const T* const from[4] = {p.parameter, p.gradient, p.first, p.second};
  T* const to[3] = {p.parameter, p.first, p.second};
  Pack<T, V> in[adam_vectors][4];
  TIDEMARK_UNROLL
  for (int u = 0; u < adam_vectors; ++u) {
    TIDEMARK_UNROLL
    for (int k = 0; k < 4; ++k)
      in[u][k] = *reinterpret_cast<const Pack<T, V>*>(from[k] + at + u * distance);
  }
  TIDEMARK_UNROLL
  for (int u = 0; u < adam_vectors; ++u) {
    float out[3][V];
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) {
      float x[4], y[3];
      TIDEMARK_UNROLL
      for (int k = 0; k < 4; ++k) x[k] = value_in(in[u][k], e);
      step(x, y);
      out[0][e] = y[0], out[1][e] = y[1], out[2][e] = y[2];
    }
    TIDEMARK_UNROLL
    for (int k = 0; k < 3; ++k)
      *reinterpret_cast<Pack<T, V>*>(to[k] + at + u * distance) = packed<T>(out[k]);
  }
}

template <typename T>
__device__ inline void adam_element(const AdamStep& step, const AdamParameter<T>& p,
                                    std::int64_t i) {
  const float x[4] = {to_fp32(p.parameter[i]), to_fp32(p.gradient[i]), to_fp32(p.first[i]),
                      to_fp32(p.second[i])};
  float y[3];
  step(x, y);
  p.parameter[i] = rounded_to<T>(y[0]);
  p.first[i] = rounded_to<T>(y[1]), p.second[i] = rounded_to<T>(y[2]);
}

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
  if (begin + adam_block<T> <= p.count)
    return adam_whole(step, p, begin + threadIdx.x * V, std::int64_t{usual_threads} * V);
  TIDEMARK_NO_UNROLL
  for (std::int64_t i = begin + threadIdx.x; i < p.count; i += usual_threads)
    adam_element(step, p, i);
}

}  // namespace tidemark::cuda
