// Sums over axes, in a fixed order: threads sum what is theirs one after the
// other, then their sums are joined as a tree. Large sums are cut into parts,
// whose sums a second kernel joins: no atomics, so every run gives the same
// bits.
#pragma once

#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

__device__ inline float warp_sum(float value) {
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(whole_warp, value, bits);
  return value;
}
__device__ inline float warp_max(float value) {
  for (int bits = 16; bits > 0; bits /= 2)
    value = max_or_nan(value, __shfl_xor_sync(whole_warp, value, bits));
  return value;
}
__device__ inline float warp_min(float value) {
  for (int bits = 16; bits > 0; bits /= 2)
    value = min_or_nan(value, __shfl_xor_sync(whole_warp, value, bits));
  return value;
}

/// Over threads 0 to blockDim.x − 1, a multiple of 32; every one gets the sum.
/// Blocks of one warp along x need no barrier, those of more must have one row
/// of threads.
struct Sum {
  __device__ static float identity() { return 0; }
  __device__ static float of_warp(float value) { return warp_sum(value); }
};
struct Max {
  __device__ static float identity() { return -INFINITY; }
  __device__ static float of_warp(float value) { return warp_max(value); }
};
struct Min {
  __device__ static float identity() { return INFINITY; }
  __device__ static float of_warp(float value) { return warp_min(value); }
};

template <typename Kind>
__device__ inline float block_reduce(float value) {
  value = Kind::of_warp(value);
  if (blockDim.x == warp_size) return value;
  __shared__ float of_warps[warp_size];
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / warp_size ? of_warps[lane] : Kind::identity();
  value = Kind::of_warp(value);
  __syncthreads();  // before the next one writes there
  return value;
}
__device__ inline float block_sum(float value) { return block_reduce<Sum>(value); }

/// Function: `inputs`, and operator()(const float (&in)[inputs]) that gives
/// what is summed.
template <typename Function, typename T>
struct ReduceArguments {
  Reader<T> in[Function::inputs];
  // Operand k's offset is that of the result's element plus that of the summed
  // one. The last operand is the result.
  Walk<Function::inputs + 1> kept, summed;
  std::int64_t summed_per_part = 0;  ///< vectors of `summed`
  float *partial = nullptr;          ///< [parts, results]
};

/// Neighbouring threads have neighbouring results: for axes that are summed
/// across rows.
inline constexpr unsigned column_lanes = 32, column_rows = 8;

/// Whole vectors of rows `i`, `i + column_rows`, …, four of them under way at once; the first row
/// that is left for others.
template <typename Function, typename T, int V>
__device__ inline std::int64_t sum_whole(const Function &function, const T *data,
                                         std::int64_t stride, std::int64_t i, std::int64_t end,
                                         float (&sum)[V]) {
  constexpr int at_once = 4;
  for (; i + (at_once - 1) * column_rows < end; i += at_once * column_rows) {
    Pack<T, V> packs[at_once];
    TIDEMARK_UNROLL
    for (int u = 0; u < at_once; ++u)
      packs[u] = *reinterpret_cast<const Pack<T, V> *>(data + (i + u * column_rows) * stride);
    TIDEMARK_UNROLL
    for (int u = 0; u < at_once; ++u) {
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        const float x[1] = {value_in(packs[u], e)};
        sum[e] += function(x);
      }
    }
  }
  return i;
}

template <typename Function, typename T, int V>
__global__ void sum_columns_kernel(Function function, ReduceArguments<Function, T> arguments) {
  constexpr int inputs = Function::inputs;
  __shared__ float sums[column_rows][column_lanes * V + 1];
  const auto &kept = arguments.kept;
  const std::int64_t result = std::int64_t{blockIdx.x} * column_lanes + threadIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.y} * arguments.summed_per_part;
  const std::int64_t most = arguments.summed.vectors;
  const std::int64_t end =
      begin + arguments.summed_per_part < most ? begin + arguments.summed_per_part : most;
  float sum[V] = {};
  Place<inputs + 1> at{};
  if (result < kept.vectors) {
    at = kept.template place<V>(result);
    std::int64_t i = begin + threadIdx.y;
    if constexpr (inputs == 1 && V > 1 && !std::is_same_v<T, AnyFloat>)
      if (arguments.in[0].data != nullptr && at.valid == V && kept.inner_stride[0] == 1 &&
          arguments.summed.rank == 0)
        i = sum_whole<Function, T, V>(function, arguments.in[0].data + at.offset[0],
                                      arguments.summed.inner_stride[0], i, end, sum);
    for (; i < end; i += column_rows) {
      const auto inside = arguments.summed.template place<1>(i);
      float in[inputs][V];
      TIDEMARK_UNROLL
      for (int k = 0; k < inputs; ++k)
        load<V>(arguments.in[k], at.offset[k] + inside.offset[k], kept.inner_stride[k], at.valid,
                in[k]);
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        float x[inputs];
        TIDEMARK_UNROLL
        for (int k = 0; k < inputs; ++k) x[k] = in[k][e];
        sum[e] += function(x);
      }
    }
  }
  TIDEMARK_UNROLL
  for (int e = 0; e < V; ++e)
    sums[threadIdx.y][threadIdx.x * V + static_cast<unsigned>(e)] = sum[e];
  __syncthreads();
  if (threadIdx.y != 0 || result >= kept.vectors) return;
  const std::int64_t results = kept.rows() * kept.inner;
  for (int e = 0; e < at.valid; ++e) {
    float total = 0;
    for (unsigned row = 0; row < column_rows; ++row)
      total += sums[row][threadIdx.x * V + static_cast<unsigned>(e)];
    arguments.partial[blockIdx.y * results + at.offset[inputs] + e] = total;
  }
}

/// One block per result, neighbouring threads sum neighbours.
template <typename Function, typename T, int V>
__global__ void sum_rows_kernel(Function function, ReduceArguments<Function, T> arguments) {
  constexpr int inputs = Function::inputs;
  const auto &summed = arguments.summed;
  const std::int64_t begin = std::int64_t{blockIdx.y} * arguments.summed_per_part;
  const std::int64_t end = begin + arguments.summed_per_part < summed.vectors
                               ? begin + arguments.summed_per_part
                               : summed.vectors;
  const std::int64_t results = arguments.kept.vectors;
  for (std::int64_t result = blockIdx.x; result < results; result += gridDim.x) {
    const auto at = arguments.kept.template place<1>(result);
    float sum = 0;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const auto inside = summed.template place<V>(i);
      float in[inputs][V];
      TIDEMARK_UNROLL
      for (int k = 0; k < inputs; ++k)
        load<V>(arguments.in[k], at.offset[k] + inside.offset[k], summed.inner_stride[k],
                inside.valid, in[k]);
      // Up to V, not to `valid`: an index that is not known in advance costs slow local memory.
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        float x[inputs];
        TIDEMARK_UNROLL
        for (int k = 0; k < inputs; ++k) x[k] = in[k][e];
        if (e < inside.valid) sum += function(x);
      }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) arguments.partial[blockIdx.y * results + at.offset[inputs]] = sum;
  }
}

/// Row-major strides, so that an element's number in its shape is an offset
/// like others.
inline Array numbering(const Shape &shape) {
  return array_at(nullptr, DType::Float32, dense(shape));
}

/// result = Σ of the parts, [parts, elements of the result].
void join_parts(Launch &launch, const char *name, const float *partial, std::int64_t parts,
                const Array &result);

/// result = Σ function(inputs) over the axes where the result spreads over
/// `large`.
template <typename Function>
void reduce(Launch &launch, const char *name, const Function &function, const Shape &large,
            const std::array<const Array *, static_cast<std::size_t>(Function::inputs)> &inputs,
            const Array &result, std::size_t slot = 0) {
  constexpr int count = Function::inputs + 1;
  const Array numbers = numbering(result.shape);
  std::array<const Array *, count> operands{};
  std::copy(inputs.begin(), inputs.end(), operands.begin());
  operands[count - 1] = &numbers;
  const Axes<count> axes = axes_over<count>(large, operands);
  Axes<count> kept, summed;
  for (int i = 0; i < axes.rank; ++i) {
    if (axes.extent[i] == 1) continue;
    (axes.stride[i][count - 1] == 0 ? summed : kept).add(axes, i);
  }
  const std::int64_t results = numel(result.shape);
  // The inner axis of the first operand decides whether rows or columns are
  // summed.
  summed = merged(summed, 0);
  kept = merged(kept, count - 1);
  const bool columns = kept.rank > 0 && kept.stride[kept.rank - 1][0] == 1;

  std::int64_t parts = 1;
  float *partial = nullptr;
  with_dtype_of(inputs, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ReduceArguments<Function, T> arguments;
    for (std::size_t k = 0; k < inputs.size(); ++k) arguments.in[k] = reader<T>(*inputs[k]);
    // All axes, the inner one last: each vector begins at a multiple of its
    // size.
    Axes<count> all = columns ? summed : kept;
    for (int i = 0; i < (columns ? kept : summed).rank; ++i) all.add((columns ? kept : summed), i);
    const bool vectors = is_vectorizable<count>(all, operands, vector_size<T>);
    const int v = vectors ? vector_size<T> : 1;
    arguments.kept = Walk<count>(kept, columns ? v : 1);
    arguments.summed = Walk<count>(summed, columns ? 1 : v);
    const std::int64_t blocks = columns ? (arguments.kept.vectors + column_lanes - 1) / column_lanes
                                        : std::min<std::int64_t>(results, 1 << 20);
    // Parts of at least four vectors per thread, and about eight blocks per
    // multiprocessor. Short sums take a warp each, which needs no barrier.
    const unsigned row_threads =
        arguments.summed.vectors <= 4 * warp_size ? warp_size : usual_threads;
    const std::int64_t threads = columns ? column_rows : row_threads;
    const std::int64_t most_parts =
        std::max<std::int64_t>(1, arguments.summed.vectors / (threads * 4));
    const std::int64_t wanted = (std::int64_t{launch.processors} * 8 + blocks - 1) / blocks;
    parts = std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(most_parts, 1024));
    arguments.summed_per_part = (arguments.summed.vectors + parts - 1) / parts;
    partial = reinterpret_cast<float *>(
        scratch(launch, parts * results * static_cast<std::int64_t>(sizeof(float)), slot));
    arguments.partial = partial;
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
    if (columns)
      start(launch, name,
            vectors ? sum_columns_kernel<Function, T, vector_size<T>>
                    : sum_columns_kernel<Function, T, 1>,
            grid, dim3(column_lanes, column_rows), 0, function, arguments);
    else
      start(
          launch, name,
          vectors ? sum_rows_kernel<Function, T, vector_size<T>> : sum_rows_kernel<Function, T, 1>,
          grid, dim3(row_threads), 0, function, arguments);
  });
  join_parts(launch, name, partial, parts, result);
}

/// Σ of the elements themselves.
struct Identity {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return x[0]; }
};
extern template void reduce(Launch &launch, const char *name, const Identity &function,
                            const Shape &large, const std::array<const Array *, 1> &inputs,
                            const Array &result, std::size_t slot);  // common_launches.cu

}  // namespace tidemark::cuda
