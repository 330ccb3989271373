// The forward pass of a norm where rows lie in vectors: mean and variance of what a thread's
// registers hold. One that is watched gives the same bits.
#pragma once

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/own_group.cuh"
#include "kernels/norm/norm.cuh"

namespace tidemark::cuda {

/// What is absent is null.
template <typename T>
struct NormColumnArguments {
  const T *x = nullptr, *gamma = nullptr, *beta = nullptr;
  T *y = nullptr, *normalized = nullptr;
  float *mean = nullptr, *rstd = nullptr;
  std::int64_t rows = 0;
  std::int64_t stride[norm_operands] = {};  ///< from row to row
  int vectors = 0;
  float share = 0, epsilon = 0;  ///< of one element in its row
  DType rounded = DType::Float32;
  DeviceGroups groups;  ///< of y, where it is watched
};

/// How y is watched; in the own group: each thread's column is of one group in every row.
enum class NormWatch : std::uint8_t { No, Anywhere, InOwnGroup };

template <bool is_centred, typename T, int P, NormWatch watching>
__global__ void __launch_bounds__(most_column_threads)
    norm_columns_kernel(NormColumnArguments<T> a) {
  constexpr int V = vector_size<T>, R = vectors_under_way / P;
  __shared__ OfWarps<R> rooms[2];
  __shared__ BlockExtremes extremes;
  auto watch = watch_if<watching != NormWatch::No>(a.groups, extremes);
  if constexpr (watching == NormWatch::InOwnGroup)
    if (thread_row() * R < a.rows && column_vector(0) < a.vectors)
      watch.stay_at(column_vector(0) * V);
  unsigned turn = 0;
  const std::int64_t groups = (a.rows + R - 1) / R;
  const std::int64_t step = thread_rows();
  // Blocks of several warps go through the loop together, as their barriers need.
  for (std::int64_t group = thread_row(); group < groups; group += step) {
    const std::int64_t row = group * R;
    Pack<T, V> x[R][P], gamma[P], beta[P];
    load_rows(a.x, a.stride[norm_x], row, a.rows, a.vectors, x);
    TIDEMARK_UNROLL
    for (int j = 0; j < P; ++j) {
      gamma[j] = beta[j] = {};
      const int i = column_vector(j);
      if (i >= a.vectors) continue;
      if (a.gamma != nullptr) gamma[j] = reinterpret_cast<const Pack<T, V> *>(a.gamma)[i];
      if (a.beta != nullptr) beta[j] = reinterpret_cast<const Pack<T, V> *>(a.beta)[i];
    }

    float mean[R] = {}, rstd[R] = {};
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        const float value = value_in(x[r][j], e);
        if constexpr (is_centred)
          mean[r] += value;
        else
          rstd[r] += value * value;
      }
    }
    if constexpr (is_centred) {
      sums_of_row(mean, rooms, turn);
      TIDEMARK_UNROLL
      for (int r = 0; r < R; ++r) {
        mean[r] *= a.share;
        TIDEMARK_UNROLL
        for (int j = 0; j < P; ++j) {
          if (column_vector(j) >= a.vectors) continue;
          TIDEMARK_UNROLL
          for (int e = 0; e < V; ++e) {
            const float centred = value_in(x[r][j], e) - mean[r];
            rstd[r] += centred * centred;
          }
        }
      }
    }
    sums_of_row(rstd, rooms, turn);

    T *to = a.y + row * a.stride[norm_y];
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r, to += a.stride[norm_y]) {
      if (row + r >= a.rows) break;
      rstd[r] = rsqrtf(rstd[r] * a.share + a.epsilon);
      if (threadIdx.x == 0) {
        if (a.mean != nullptr) a.mean[(row + r) * a.stride[norm_mean]] = mean[r];
        if (a.rstd != nullptr) a.rstd[(row + r) * a.stride[norm_rstd]] = rstd[r];
      }
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) {
        const int i = column_vector(j);
        if (i >= a.vectors) continue;
        float y[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) y[e] = (value_in(x[r][j], e) - mean[r]) * rstd[r];
        if constexpr (!is_centred) {
          TIDEMARK_UNROLL
          for (int e = 0; e < V; ++e) y[e] = rounded_as(a.rounded, y[e]);
          if (a.normalized != nullptr)
            *reinterpret_cast<Pack<T, V> *>(a.normalized + (row + r) * a.stride[norm_z] + i * V) =
                packed<T>(y);
        }
        if (a.gamma != nullptr) {
          TIDEMARK_UNROLL
          for (int e = 0; e < V; ++e) y[e] *= value_in(gamma[j], e);
        }
        if (a.beta != nullptr) {
          TIDEMARK_UNROLL
          for (int e = 0; e < V; ++e) y[e] += value_in(beta[j], e);
        }
        reinterpret_cast<Pack<T, V> *>(to)[i] = packed<T>(y);
        const std::int64_t at = (row + r) * a.stride[norm_y] + i * V;
        if constexpr (watching == NormWatch::InOwnGroup)
          watch.note_there(at, y);
        else
          watch.note(at, 1, V, y);
      }
    }
  }
  watch.finish();
}

}  // namespace tidemark::cuda
