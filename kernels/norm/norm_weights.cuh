// The whole backward of a norm in one pass: x and dy are read once for dx and for the sums of its
// weight and bias. Each thread keeps a row's elements, and its columns' sums over all rows that its
// block works on, in registers; the blocks' sums are joined by a second, small kernel.
#pragma once

#include "kernels/norm/norm.cuh"

namespace tidemark::cuda {

/// Elements of a row per thread: a warp has rows of up to 1024, a block those of up to 8192.
inline constexpr int norm_elements = 32;

/// A whole vector, side by side in memory, of one group if it is coded.
template <int V, typename T>
__device__ inline void load_vector(const Reader<T>& from, std::int64_t offset, float (&out)[V]) {
  const auto take = [&](auto* data) {
    const auto pack = *reinterpret_cast<const Pack<std::decay_t<decltype(*data)>, V>*>(
        reinterpret_cast<const std::byte*>(data + offset));
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) out[e] = to_fp32(pack.values[e]);
  };
  if constexpr (!std::is_same_v<T, AnyFloat>) {
    take(from.data);
  } else if (from.dtype == DType::UInt8) {
    const auto pack = *reinterpret_cast<const Pack<std::uint8_t, V>*>(from.data + offset);
    const GroupRange group = *from.groups.at(offset).range;
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) out[e] = decoded(pack.values[e], group, 8);
  } else if (from.dtype == DType::Float32) {
    take(reinterpret_cast<const float*>(from.data));
  } else if (from.dtype == DType::BFloat16) {
    take(reinterpret_cast<const BFloat16*>(from.data));
  } else {
    take(reinterpret_cast<const Float16*>(from.data));
  }
}

/// X: AnyFloat where x is of another dtype than the gradients, or coded.
template <typename T, typename X>
struct WholeNormArguments {
  Reader<X> x;
  Reader<T> dy;
  Reader<AnyFloat> gamma;
  Writer<T> dx;
  const float *mean = nullptr, *rstd = nullptr;  ///< mean absent = 0
  Rows<norm_gradient_operands> rows;
  bool has_gamma = false;
  DType rounded = DType::Float32;             ///< of the normalized row that γ was multiplied by
  float *dgamma = nullptr, *dbeta = nullptr;  ///< [blocks, width] each
};

/// This thread's columns of a row: vector j is threadIdx.x + j · blockDim.x.
template <int V>
using NormColumns = float[norm_elements / V][V];

/// The block's sum of each column goes to its row of `sums`: thread rows in their order.
template <int V>
__device__ inline void write_column_sums(const NormColumns<V>& own, std::int64_t width,
                                         float* sums) {
  __shared__ float of_rows[warps_per_block][widest_of_warp];
  const std::int64_t vectors = width / V;
  if (blockDim.y > 1) {
    __syncthreads();  // the sums before these have been read
    TIDEMARK_UNROLL
    for (int j = 0; j < norm_elements / V; ++j) {
      const std::int64_t i = threadIdx.x + j * std::int64_t{blockDim.x};
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e)
        if (i < vectors) of_rows[threadIdx.y][e * vectors + i] = own[j][e];
    }
    __syncthreads();
    if (threadIdx.y != 0) return;
  }
  TIDEMARK_UNROLL
  for (int j = 0; j < norm_elements / V; ++j) {
    const std::int64_t i = threadIdx.x + j * std::int64_t{blockDim.x};
    if (i >= vectors) continue;
    float sum[V];
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) {
      sum[e] = own[j][e];
      for (unsigned row = 1; row < blockDim.y; ++row) sum[e] += of_rows[row][e * vectors + i];
    }
    *reinterpret_cast<Pack<float, V>*>(sums + blockIdx.x * width + i * V) = packed<float>(sum);
  }
}

template <bool is_centred, typename T, typename X>
__global__ void __launch_bounds__(usual_threads)
    norm_whole_backward_kernel(WholeNormArguments<T, X> a) {
  constexpr int V = vector_size<T>, most = norm_elements / V;
  const std::int64_t width = a.rows.width, vectors = width / V;
  NormColumns<V> dgamma = {}, dbeta = {};
  for (std::int64_t r = first_row(); r < a.rows.count; r += row_stride()) {
    const auto at = a.rows.outer.template place<1>(r);
    const float rstd = a.rstd[at.offset[grad_rstd]];
    const float mean = a.mean != nullptr ? a.mean[at.offset[grad_mean]] : 0.0f;
    NormColumns<V> z = {}, g = {};  // the normalized row, and dy · γ; beyond the row zeros
    TIDEMARK_UNROLL
    for (int j = 0; j < most; ++j) {
      const std::int64_t i = threadIdx.x + j * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      load_vector<V>(a.x, at.offset[grad_x] + i * V, z[j]);
      load_vector<V>(a.dy, at.offset[grad_dy] + i * V, g[j]);
    }
    float sum = 0, product = 0;
    TIDEMARK_UNROLL
    for (int j = 0; j < most; ++j) {
      const std::int64_t i = threadIdx.x + j * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      float gamma[V];
      if (a.has_gamma) load_vector<V>(a.gamma, i * V, gamma);
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        z[j][e] = (z[j][e] - mean) * rstd;
        dgamma[j][e] += g[j][e] * rounded_as(a.rounded, z[j][e]);
        dbeta[j][e] += g[j][e];
        if (a.has_gamma) g[j][e] *= gamma[e];
        sum += g[j][e], product += g[j][e] * z[j][e];
      }
    }
    sum = is_centred ? block_sum(sum) / static_cast<float>(width) : 0.0f;
    product = block_sum(product) / static_cast<float>(width);
    TIDEMARK_UNROLL
    for (int j = 0; j < most; ++j) {
      const std::int64_t i = threadIdx.x + j * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) g[j][e] = rstd * (g[j][e] - sum - z[j][e] * product);
      *reinterpret_cast<Pack<T, V>*>(a.dx.data + at.offset[grad_dx] + i * V) = packed<T>(g[j]);
    }
  }
  if (a.dgamma != nullptr) write_column_sums<V>(dgamma, width, a.dgamma);
  if (a.dbeta != nullptr) write_column_sums<V>(dbeta, width, a.dbeta);
}

}  // namespace tidemark::cuda
