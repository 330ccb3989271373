// Negative log-likelihood. The sum is a thousandth of the log-softmax before it: one block takes
// it, in a fixed order.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

inline constexpr std::int64_t ignored_target = -100;  // PyTorch's ignore_index
inline constexpr unsigned loss_threads = 1024;

/// Sum and number of what one thread or many have seen.
struct Losses {
  double sum;
  std::int64_t count;
};

__device__ inline Losses block_total(Losses mine) {
  __shared__ Losses of_warps[loss_threads / warp_size];
  for (int bits = 16; bits > 0; bits /= 2) {
    mine.sum += __shfl_xor_sync(whole_warp, mine.sum, bits);
    mine.count += __shfl_xor_sync(whole_warp, static_cast<long long>(mine.count), bits);
  }
  if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = mine;
  __syncthreads();
  Losses total{0, 0};
  for (unsigned warp = 0; warp < blockDim.x / warp_size; ++warp) {
    total.sum += of_warps[warp].sum;
    total.count += of_warps[warp].count;
  }
  return total;
}

/// Walk over the rows: the first log-probability, the target.
template <typename T>
__global__ void __launch_bounds__(loss_threads)
    nll_forward_kernel(Reader<T> log_p, std::int64_t class_stride, std::int64_t classes,
                       const std::int64_t* targets, Walk<2> rows, Writer<T> loss,
                       Writer<T> weight) {
  Losses mine{0, 0};
  for (std::int64_t row = threadIdx.x; row < rows.vectors; row += blockDim.x) {
    const auto at = rows.place<1>(row);
    const std::int64_t target = targets[at.offset[1]];
    if (target == ignored_target) continue;
    if (target < 0 || target >= classes) __trap();
    mine.sum -= static_cast<double>(load_one(log_p, at.offset[0] + target * class_stride));
    ++mine.count;
  }
  const Losses total = block_total(mine);
  if (threadIdx.x != 0) return;
  store_one(loss, 0, static_cast<float>(total.sum / static_cast<double>(total.count)));
  store_one(weight, 0, static_cast<float>(total.count));
}

/// The number of rows that count, where it was not saved.
__global__ void __launch_bounds__(loss_threads)
    nll_count_kernel(const std::int64_t* targets, Walk<2> rows, float* count) {
  Losses mine{0, 0};
  for (std::int64_t row = threadIdx.x; row < rows.vectors; row += blockDim.x)
    if (targets[rows.place<1>(row).offset[1]] != ignored_target) ++mine.count;
  const Losses total = block_total(mine);
  if (threadIdx.x == 0) *count = static_cast<float>(total.count);
}

/// Writes every element once. Walk: the gradient, the row's target, the class.
template <typename T, int V>
__global__ void nll_backward_kernel(Writer<T> d_log_p, const std::int64_t* targets,
                                    Reader<T> d_loss, Reader<T> weight, const float* count,
                                    Walk<3> walk) {
  const float total = count != nullptr ? *count : load_one(weight, 0);
  const float gradient = -load_one(d_loss, 0) / total;
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    const std::int64_t hit = targets[at.offset[1]] - at.offset[2];
    float values[V];
    for (int e = 0; e < V; ++e) values[e] = e == hit ? gradient : 0.0f;
    store<V>(d_log_p, at.offset[0], walk.inner_stride[0], at.valid, values);
  }
}

}  // namespace tidemark::cuda
