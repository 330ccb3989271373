// Rows of a table by their numbers. The backward pass has no sort and no atomics on sums: ids that
// name the same row are chained (in any order, which integer atomics give), each row's block sorts
// its few ids and adds in their order. A row that more ids name than fit into shared memory is
// found by looking through all ids, in order. So every run gives the same bits.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

template <typename T>
struct EmbeddingArguments {
  const std::int64_t* ids = nullptr;
  Reader<T> table;
  Writer<T> y;
  std::int64_t rows = 0, row_stride = 0, column_stride = 0;
  Walk<3> walk;  ///< over y: of y, of the ids, of the column
};

/// What is wrong with the data cannot be told from a kernel: it stops the stream.
__device__ inline void require_row(std::int64_t id, std::int64_t rows) {
  if (id < 0 || id >= rows) __trap();
}

template <typename T, int V>
__global__ void embedding_forward_kernel(EmbeddingArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<V>(i);
    const std::int64_t id = a.ids[at.offset[1]];
    require_row(id, a.rows);
    float row[V];
    load<V>(a.table, id * a.row_stride + at.offset[2] * a.column_stride, a.column_stride, at.valid,
            row);
    store<V>(a.y, at.offset[0], a.walk.inner_stride[0], at.valid, row);
  }
}

/// Per row of the table: its last chained id and how many there are; per id: the next one.
struct Chains {
  long long *first, *next;
  unsigned* count;
};

__global__ void begin_chains_kernel(Chains chains, std::int64_t rows) {
  for (std::int64_t row = thread_of_grid(); row < rows; row += threads_of_grid()) {
    chains.first[row] = -1;
    chains.count[row] = 0;
  }
}

__global__ void chain_ids_kernel(const std::int64_t* ids, Walk<1> walk, std::int64_t rows,
                                 Chains chains) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const std::int64_t id = ids[walk.place<1>(i).offset[0]];
    require_row(id, rows);
    // CUDA has the 64-bit exchange for unsigned numbers only; −1 survives it.
    chains.next[i] =
        static_cast<long long>(atomicExch(reinterpret_cast<unsigned long long*>(chains.first + id),
                                          static_cast<unsigned long long>(i)));
    atomicAdd(chains.count + id, 1u);
  }
}

template <typename T>
struct EmbeddingGradientArguments {
  const std::int64_t* ids = nullptr;
  Walk<1> id_walk;
  Reader<T> dy;
  Walk<1> dy_rows;  ///< numbered as the ids are
  std::int64_t dy_step = 1;
  Writer<T> dtable;
  std::int64_t rows = 0, width = 0, row_stride = 0, column_stride = 0;
  Chains chains;
};

inline constexpr unsigned longest_chain = 256;
inline constexpr unsigned gradient_lanes = 32;

/// A block per row of the table and part of its columns; its lanes have the columns, its thread
/// rows share the ids.
template <typename T, int V, unsigned gradient_rows>
__global__ void __launch_bounds__(gradient_lanes* gradient_rows, 1)
    embedding_backward_kernel(EmbeddingGradientArguments<T> a) {
  __shared__ long long chained[longest_chain], sorted[longest_chain];
  __shared__ float sums[gradient_rows][gradient_lanes * V];
  const unsigned thread = threadIdx.y * gradient_lanes + threadIdx.x;
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const unsigned count = a.chains.count[row];
    const bool is_short = count <= longest_chain;
    __syncthreads();  // the row before has been read
    if (is_short && thread == 0) {
      long long id = a.chains.first[row];
      for (unsigned k = 0; k < count; ++k) chained[k] = id, id = a.chains.next[id];
    }
    __syncthreads();
    if (is_short && thread < count) {
      unsigned rank = 0;
      for (unsigned k = 0; k < count; ++k) rank += chained[k] < chained[thread] ? 1u : 0u;
      sorted[rank] = chained[thread];
    }
    __syncthreads();
    const std::int64_t candidates = is_short ? count : a.id_walk.vectors;
    for (std::int64_t begin = std::int64_t{blockIdx.y} * gradient_lanes * V; begin < a.width;
         begin += std::int64_t{gridDim.y} * gradient_lanes * V) {
      const std::int64_t column = begin + threadIdx.x * V;
      const std::int64_t left = a.width - column;
      const int valid = left <= 0 ? 0 : left < V ? static_cast<int>(left) : V;
      float sum[V] = {};
      for (std::int64_t k = threadIdx.y; k < candidates && valid > 0; k += gradient_rows) {
        const std::int64_t i = is_short ? sorted[k] : k;
        if (!is_short && a.ids[a.id_walk.template place<1>(i).offset[0]] != row) continue;
        float dy[V];
        load<V>(a.dy, a.dy_rows.template place<1>(i).offset[0] + column * a.dy_step, a.dy_step,
                valid, dy);
        for (int e = 0; e < V; ++e) sum[e] += dy[e];
      }
      for (int e = 0; e < V; ++e)
        sums[threadIdx.y][threadIdx.x * V + static_cast<unsigned>(e)] = sum[e];
      __syncthreads();
      if (threadIdx.y == 0 && valid > 0) {
        for (unsigned part = 1; part < gradient_rows; ++part)
          for (int e = 0; e < V; ++e)
            sum[e] += sums[part][threadIdx.x * V + static_cast<unsigned>(e)];
        store<V>(a.dtable, row * a.row_stride + column * a.column_stride, a.column_stride, valid,
                 sum);
      }
      __syncthreads();
    }
  }
}

}  // namespace tidemark::cuda
