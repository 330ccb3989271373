// Softmax and log-softmax of rows: maximum, sum and result from one read of the row.
#pragma once

#include "kernels/cuda/gradients.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/watch.cuh"

namespace tidemark::cuda {

template <typename T>
struct SoftmaxArguments {
  Reader<T> x;
  Writer<T> y;
  Rows<2> rows;
};

template <bool is_log, typename T, int V, bool is_cached>
__global__ void softmax_forward_kernel(SoftmaxArguments<T> a) {
  TIDEMARK_SHARED(float, shared);
  __shared__ BlockExtremes extremes;
  auto watch = watch_of(a.y, extremes);
  const std::int64_t width = a.rows.width, vectors = (width + V - 1) / V;
  for (std::int64_t r = first_row(); r < a.rows.count; r += row_stride()) {
    const auto at = a.rows.outer.template place<1>(r);
    const RowReader<T, V, is_cached> row{a.x, at.offset[0], a.rows.step[0], width,
                                         row_cache<V>(shared, width, 1, 0)};
    float largest = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V];
      row.first(i, x);
      const int valid = row.valid(i);
      for (int e = 0; e < V; ++e)
        if (e < valid) largest = max_or_nan(largest, x[e]);
    }
    largest = block_reduce<Max>(largest);
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V];
      row.again(i, x);
      const int valid = row.valid(i);
      for (int e = 0; e < V; ++e)
        if (e < valid) sum += expf(x[e] - largest);
    }
    sum = block_sum(sum);
    const float scale = 1.0f / sum, log_sum = logf(sum);
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float x[V];
      row.again(i, x);
      for (int e = 0; e < V; ++e)
        x[e] = is_log ? x[e] - largest - log_sum : expf(x[e] - largest) * scale;
      const std::int64_t y = at.offset[1] + i * V * a.rows.step[1];
      store_unwatched<V>(a.y, y, a.rows.step[1], row.valid(i), x);
      watch.note(y, a.rows.step[1], row.valid(i), x);
    }
  }
  watch.finish();
}

template <typename T>
struct SoftmaxGradientArguments {
  Reader<T> y, dy;
  Writer<T> dx;
  Rows<3> rows;
};

/// dx = y · (dy − Σ dy·y); of the logarithm dx = dy − e^y · Σ dy.
template <bool is_log, typename T, int V, bool is_cached>
__global__ void softmax_backward_kernel(SoftmaxGradientArguments<T> a) {
  TIDEMARK_SHARED(float, shared);
  const std::int64_t width = a.rows.width, vectors = (width + V - 1) / V;
  for (std::int64_t r = first_row(); r < a.rows.count; r += row_stride()) {
    const auto at = a.rows.outer.template place<1>(r);
    const RowReader<T, V, is_cached> y_row{a.y, at.offset[0], a.rows.step[0], width,
                                           row_cache<V>(shared, width, 2, 0)};
    const RowReader<T, V, is_cached> dy_row{a.dy, at.offset[1], a.rows.step[1], width,
                                            row_cache<V>(shared, width, 2, 1)};
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float y[V], dy[V];
      y_row.first(i, y);
      dy_row.first(i, dy);
      for (int e = 0; e < V; ++e)
        sum += is_log ? dy[e] : dy[e] * y[e];  // beyond the row both are 0
    }
    sum = block_sum(sum);
    for (std::int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
      float y[V], dy[V];
      y_row.again(i, y);
      dy_row.again(i, dy);
      for (int e = 0; e < V; ++e) dy[e] = is_log ? dy[e] - expf(y[e]) * sum : y[e] * (dy[e] - sum);
      store<V>(a.dx, at.offset[2] + i * V * a.rows.step[2], a.rows.step[2], y_row.valid(i), dy);
    }
  }
}

}  // namespace tidemark::cuda
