// LayerNorm and RMSNorm: a row is read once, its mean and variance are taken from shared memory.
#pragma once

#include "kernels/cuda/gradients.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/watch.cuh"

namespace tidemark::cuda {

/// Operands of the forward pass, in this order.
enum NormOperand : int { norm_x, norm_gamma, norm_beta, norm_y, norm_mean, norm_rstd, norm_z };
inline constexpr int norm_operands = 7;

template <typename T>
struct NormArguments {
  Reader<T> x, gamma, beta;
  Writer<T> y, normalized;
  float *mean = nullptr, *rstd = nullptr;
  Rows<norm_operands> rows;
  float epsilon = 0;
  bool has_gamma = false;
  DType rounded = DType::Float32;  ///< of the normalized row, wherever it is used
};

/// Mean (0 unless centred) and 1/σ of a row.
struct Moments {
  float mean, rstd;
};

template <bool is_centred, int V, typename Row>
__device__ inline Moments moments_of(const Row& row, std::int64_t vectors, float epsilon) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    float x[V];
    row.first(i, x);
    for (int e = 0; e < V; ++e) sum += is_centred ? x[e] : x[e] * x[e];
  }
  const auto width = static_cast<float>(row.width);
  sum = block_sum(sum) / width;
  if constexpr (!is_centred) return {0.0f, rsqrtf(sum + epsilon)};
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    float x[V];
    row.again(i, x);
    const int valid = row.valid(i);
    for (int e = 0; e < V; ++e)
      if (e < valid) squares += (x[e] - sum) * (x[e] - sum);
  }
  return {sum, rsqrtf(block_sum(squares) / width + epsilon)};
}

template <bool is_centred, typename T, int V, bool is_cached>
__global__ void norm_forward_kernel(NormArguments<T> a) {
  TIDEMARK_SHARED(float, shared);
  __shared__ BlockExtremes extremes;
  auto watch = watch_of(a.y, extremes);
  const std::int64_t width = a.rows.width, vectors = (width + V - 1) / V;
  const std::int64_t* step = a.rows.step;
  for (std::int64_t r = first_row(); r < a.rows.count; r += row_stride()) {
    const auto at = a.rows.outer.template place<1>(r);
    const RowReader<T, V, is_cached> row{a.x, at.offset[norm_x], step[norm_x], width,
                                         row_cache<V>(shared, width, 1, 0)};
    const Moments m = moments_of<is_centred, V>(row, vectors, a.epsilon);
    if (threadIdx.x == 0) {
      if (a.mean != nullptr) a.mean[at.offset[norm_mean]] = m.mean;
      if (a.rstd != nullptr) a.rstd[at.offset[norm_rstd]] = m.rstd;
    }
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V], gamma[V], beta[V];
      row.again(i, x);
      const int valid = row.valid(i);
      load<V>(a.gamma, i * V * step[norm_gamma], step[norm_gamma], valid, gamma);
      load<V>(a.beta, i * V * step[norm_beta], step[norm_beta], valid, beta);
      for (int e = 0; e < V; ++e) x[e] = rounded_as(a.rounded, (x[e] - m.mean) * m.rstd);
      store<V>(a.normalized, at.offset[norm_z] + i * V * step[norm_z], step[norm_z], valid, x);
      for (int e = 0; e < V; ++e) x[e] = (a.has_gamma ? x[e] * gamma[e] : x[e]) + beta[e];
      const std::int64_t y = at.offset[norm_y] + i * V * step[norm_y];
      store_unwatched<V>(a.y, y, step[norm_y], valid, x);
      watch.note(y, step[norm_y], valid, x);
    }
  }
  watch.finish();
}

/// Mean and 1/σ alone, for a backward pass that was left without. Rows: of the moments, of x.
template <bool is_centred, typename T, int V, bool is_cached>
__global__ void norm_moments_kernel(Reader<T> x, Rows<2> rows, float epsilon, float* mean,
                                    float* rstd) {
  TIDEMARK_SHARED(float, shared);
  const std::int64_t vectors = (rows.width + V - 1) / V;
  for (std::int64_t r = first_row(); r < rows.count; r += row_stride()) {
    const auto at = rows.outer.template place<1>(r);
    const RowReader<T, V, is_cached> row{x, at.offset[1], rows.step[1], rows.width,
                                         row_cache<V>(shared, rows.width, 1, 0)};
    const Moments m = moments_of<is_centred, V>(row, vectors, epsilon);
    if (threadIdx.x != 0) continue;
    mean[at.offset[0]] = m.mean;
    rstd[at.offset[0]] = m.rstd;
  }
}

/// Operands of the backward pass: `x` is the input, or the output of a norm without affine part.
enum NormGradientOperand : int { grad_x, grad_dy, grad_gamma, grad_dx, grad_mean, grad_rstd };
inline constexpr int norm_gradient_operands = 6;

template <typename T>
struct NormGradientArguments {
  Reader<T> x, dy, gamma;
  Writer<T> dx;
  const float *mean = nullptr, *rstd = nullptr;  ///< mean absent = 0
  Rows<norm_gradient_operands> rows;
  bool has_gamma = false;
  bool is_normalized = false;  ///< x is already (x − mean) · rstd
};

/// dx = rstd · (g − mean(g) − z · mean(g · z)), g = dy · γ, z the normalized row; without mean(g)
/// where the norm does not centre.
template <bool is_centred, typename T, int V, bool is_cached>
__global__ void norm_backward_kernel(NormGradientArguments<T> a) {
  TIDEMARK_SHARED(float, shared);
  const std::int64_t width = a.rows.width, vectors = (width + V - 1) / V;
  const std::int64_t* step = a.rows.step;
  for (std::int64_t r = first_row(); r < a.rows.count; r += row_stride()) {
    const auto at = a.rows.outer.template place<1>(r);
    const RowReader<T, V, is_cached> x_row{a.x, at.offset[grad_x], step[grad_x], width,
                                           row_cache<V>(shared, width, 2, 0)};
    const RowReader<T, V, is_cached> dy_row{a.dy, at.offset[grad_dy], step[grad_dy], width,
                                            row_cache<V>(shared, width, 2, 1)};
    const float rstd = a.rstd[at.offset[grad_rstd]];
    const float shift = a.mean != nullptr ? a.mean[at.offset[grad_mean]] : 0.0f;
    const float factor = a.is_normalized ? 1.0f : rstd;
    const auto gamma_times = [&](std::int64_t i, int valid, float(&g)[V]) {
      if (!a.has_gamma) return;
      float gamma[V];
      load<V>(a.gamma, i * V * step[grad_gamma], step[grad_gamma], valid, gamma);
      for (int e = 0; e < V; ++e) g[e] *= gamma[e];
    };
    float sum = 0, product = 0;
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V], g[V];
      x_row.first(i, x);
      dy_row.first(i, g);
      gamma_times(i, x_row.valid(i), g);
      for (int e = 0; e < V; ++e)
        sum += g[e], product += g[e] * ((x[e] - shift) * factor);  // beyond the row g is 0
    }
    sum = is_centred ? block_sum(sum) / static_cast<float>(width) : 0.0f;
    product = block_sum(product) / static_cast<float>(width);
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V], g[V];
      x_row.again(i, x);
      dy_row.again(i, g);
      const int valid = x_row.valid(i);
      gamma_times(i, valid, g);
      for (int e = 0; e < V; ++e) g[e] = rstd * (g[e] - sum - (x[e] - shift) * factor * product);
      store<V>(a.dx, at.offset[grad_dx] + i * V * step[grad_dx], step[grad_dx], valid, g);
    }
  }
}

/// One term of dγ: of {dy, x, mean, rstd}.
struct GammaTerm {
  static constexpr int inputs = 4;
  __device__ float operator()(const float (&in)[4]) const {
    return in[0] * ((in[1] - in[2]) * in[3]);
  }
};

/// Of an RMSNorm: {dy, x, rstd}, or {dy, normalized x}.
struct RmsGammaTerm {
  static constexpr int inputs = 3;
  DType rounded;
  __device__ float operator()(const float (&in)[3]) const {
    return in[0] * rounded_as(rounded, in[1] * in[2]);
  }
};
struct RmsGammaOfNormalized {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const { return in[0] * in[1]; }
};

}  // namespace tidemark::cuda
