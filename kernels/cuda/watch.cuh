// Minimum and maximum of what a kernel writes, by Mesa's groups, while it writes it, and the codes
// where they are made in passing. One number of the device's memory asked for by every thread is
// one slice of the second-level cache that all wait for. So a thread keeps a group's extremes in
// registers as long as it stays in the group, the block's threads meet in shared memory, and each
// block goes to the device's memory once. Where it can, a thread stays in one group from start to
// end (own_group.cuh).
#pragma once

#include <numeric>

#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

/// Threads of a block that watches what lies in one piece, and blocks of them on a multiprocessor:
/// blocks go to the device's memory at about the same time, so few large ones ask for each number
/// less often. On an H200 a watched sum of [12608, 768] takes 1.05 times an unwatched one, 1.2
/// times with eight blocks of the usual size and 1.6 with 64
/// (bench/results/nvidia-h200/2026-11-27/watching.json).
inline constexpr unsigned watching_threads = 768;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr unsigned watching_resident = 1;
#else
inline constexpr unsigned watching_resident = 2;
#endif

/// Beyond so many groups each thread goes to the device's memory: Mesa's groups are heads, of which
/// published networks have up to 64 (LLaMA-65B).
inline constexpr int block_groups = 64;

/// Keys, 0 = none seen. Shared by a block's threads.
struct BlockExtremes {
  std::uint32_t least[block_groups], most[block_groups];
};

__device__ inline unsigned thread_of_block() { return threadIdx.y * blockDim.x + threadIdx.x; }
__device__ inline unsigned threads_of_block() { return blockDim.x * blockDim.y; }

/// One array's, as a thread sees them. All threads of the block make it, and end it, together.
class Watch {
 public:
  __device__ Watch(const DeviceGroups& groups, BlockExtremes& of_block)
      : groups_(groups), of_block_(of_block) {
    if (groups_.ranges == nullptr || !meet()) return;
    for (unsigned g = thread_of_block(); g < block_groups; g += threads_of_block())
      of_block_.least[g] = of_block_.most[g] = 0;
    __syncthreads();
  }

  template <int V>
  __device__ void note(std::int64_t offset, std::int64_t stride, int valid,
                       const float (&values)[V]) {
    if (groups_.ranges == nullptr || valid <= 0) return;
    const DeviceGroups::Group group = groups_.at(offset);
    write_codes<V>(groups_, group, offset, stride, valid, values);
    if (stride == 1 && group.left >= valid) {
      change_to(group.number);
      TIDEMARK_UNROLL
      for (int i = 0; i < V; ++i)
        if (i < valid) add(values[i]);
      return;
    }
    for_each_value(values, valid, [&](int i, float x) {
      change_to(groups_.at(offset + i * stride).number), add(x);
    });
  }

  /// For a thread that writes whole vectors of one group alone, whose element this is: the group is
  /// looked up here, once. At least one vector must follow.
  __device__ void stay_at(std::int64_t offset) {
    if (groups_.ranges == nullptr) return;
    change_to(groups_.at(offset).number);
    const GroupRange& range = groups_.ranges[group_];
    scale_ = code_levels(8) / range.range, minimum_ = range.minimum;
  }
  template <int V>
  __device__ void note_there(std::int64_t offset, const float (&values)[V]) {
    if (groups_.ranges == nullptr) return;
    if constexpr (V % 4 == 0)
      if (groups_.written != nullptr)
        write_codes<V>(groups_, Encoder(scale_, minimum_), groups_.first + offset, values);
    TIDEMARK_UNROLL
    for (int i = 0; i < V; ++i) add(values[i]);
  }

  __device__ void finish() {
    if (groups_.ranges == nullptr) return;
    change_to(none);
    if (!meet()) return;
    __syncthreads();
    for (unsigned g = thread_of_block(); g < groups_.count.value; g += threads_of_block()) {
      note_max(&groups_.ranges[g].least, of_block_.least[g]);
      note_max(&groups_.ranges[g].most, of_block_.most[g]);
    }
  }

 private:
  __device__ bool meet() const { return groups_.count.value <= block_groups; }
  __device__ void add(float x) { least_ = min_or_nan(least_, x), most_ = max_or_nan(most_, x); }
  __device__ void change_to(int group) {
    if (group == group_) return;
    if (group_ != none) {
      GroupRange& before = groups_.ranges[group_];
      note_max(meet() ? &of_block_.least[group_] : &before.least, order_key(-least_));
      note_max(meet() ? &of_block_.most[group_] : &before.most, order_key(most_));
    }
    group_ = group, least_ = INFINITY, most_ = -INFINITY;
  }

  const DeviceGroups& groups_;
  BlockExtremes& of_block_;
  static constexpr int none = -1;
  int group_ = none;  ///< that the thread is in
  float least_ = INFINITY, most_ = -INFINITY;
  float scale_ = 0, minimum_ = 0;  ///< of the codes of the group that it stays in
};

/// Of kernels that nobody watches.
struct NoWatch {
  template <int V>
  __device__ void note(std::int64_t, std::int64_t, int, const float (&)[V]) {}
  __device__ void finish() {}
};

/// Typed writers have no groups.
template <typename T>
__device__ inline auto watch_of(const Writer<T>& to, BlockExtremes& of_block) {
  if constexpr (std::is_same_v<T, AnyFloat>)
    return Watch(to.groups, of_block);
  else
    return NoWatch{};
}

/// Of kernels that are compiled for both.
template <bool is_watched>
__device__ inline auto watch_if(const DeviceGroups& groups, BlockExtremes& of_block) {
  if constexpr (is_watched)
    return Watch(groups, of_block);
  else
    return NoWatch{};
}

/// The fewest blocks of so many threads whose vectors are whole periods of the groups.
inline std::int64_t blocks_of_a_period(const Groups& groups, int vector,
                                       unsigned threads = usual_threads) {
  const std::int64_t period = groups.stretch * groups.count;
  return period / std::gcd(period, std::int64_t{threads} * vector);
}

/// As many blocks of the usual size as run at once, so that each goes through much before it ends;
/// and so many that a thread's next vector, a grid of threads further, is in the group of its last
/// one where that can be.
inline unsigned watching_blocks(std::int64_t at_once, std::int64_t vectors, int vector,
                                const Groups& groups) {
  const std::int64_t wanted = (vectors + usual_threads - 1) / usual_threads;
  if (wanted <= at_once) return static_cast<unsigned>(wanted < 1 ? 1 : wanted);
  const std::int64_t whole = blocks_of_a_period(groups, vector);
  return static_cast<unsigned>(whole <= at_once ? at_once / whole * whole : at_once);
}

}  // namespace tidemark::cuda
