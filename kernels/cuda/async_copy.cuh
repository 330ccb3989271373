// Copies from global to shared memory that arrive later (cp.async, from compute capability 8.0 on):
// no register holds what is on its way, and no thread waits for it until it says so. Elsewhere they
// are copies like any other, so that one text serves both.
#pragma once

#include "kernels/cuda/device.cuh"

namespace tidemark::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// 16 bytes, both addresses multiples of it; zeros where there is nothing to read.
__device__ inline void copy_async(void* shared, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
/// All copies of this thread since the last call are one group.
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until no more than `pending` of its groups are on their way. Other threads' copies are there
/// behind the barrier that follows.
template <int pending>
__device__ inline void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
#else
__device__ inline void copy_async(void* shared, const void* from, bool exists) {
  uint4 bytes{};
  if (exists) memcpy(&bytes, from, sizeof bytes);
  memcpy(shared, &bytes, sizeof bytes);
}
__device__ inline void end_group() {}
template <int>
__device__ inline void wait_for_groups() {}
#endif

}  // namespace tidemark::cuda
