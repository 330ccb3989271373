// What the source of a CUDA kernel needs: the language's own headers under nvcc; elsewhere the
// emulation, whose header the tests name by TIDEMARK_EMULATE_CUDA. Kernels (.cuh) and launch
// functions (.cu) are plain C++ for both.
#pragma once

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/// The kernel's dynamic shared memory, as elements of `type`.
#define TIDEMARK_SHARED(type, name)                  \
  extern __shared__ uint4 tidemark_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(tidemark_dynamic_shared)
#define TIDEMARK_UNROLL _Pragma("unroll")
#define TIDEMARK_NO_UNROLL _Pragma("unroll 1")
#elif defined(TIDEMARK_EMULATE_CUDA)
#include TIDEMARK_EMULATE_CUDA
#define TIDEMARK_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(::tidemark::emulation::dynamic_shared())
#define TIDEMARK_UNROLL
#define TIDEMARK_NO_UNROLL
#else
#error "CUDA sources are for nvcc, or for the emulation of the tests"
#endif

#include <type_traits>

#include "kernels/cuda/launch.h"
#include "kernels/number_formats.h"

namespace tidemark::cuda {

inline constexpr unsigned warp_size = 32, whole_warp = 0xffffffffu;

#if defined(__CUDACC__)
__device__ inline float to_fp32(float x) { return x; }
__device__ inline float to_fp32(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ inline float to_fp32(Float16 x) { return __half2float(__ushort_as_half(x.bits)); }
template <typename T>
__device__ inline T rounded_to(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else {
    T result;
    if constexpr (std::is_same_v<T, BFloat16>)
      result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    else
      result.bits = __half_as_ushort(__float2half_rn(x));
    return result;
  }
}

/// Two at once: one instruction for both where the device has it, and no packing.
__device__ inline void round_pair(float x, float y, BFloat16* to) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  memcpy(to, &pair, sizeof pair);
}
__device__ inline void round_pair(float x, float y, Float16* to) {
  const __half2 pair = __floats2half2_rn(x, y);
  memcpy(to, &pair, sizeof pair);
}

/// The device's own approximations, which take two to five instructions where the rounded results
/// take fifteen and a branch: within two units in the last place, of quotients while |b| is between
/// 2^−126 and 2^126 (CUDA C++ Programming Guide, intrinsic functions; PTX ISA, sqrt.approx).
__device__ inline float approximate_quotient(float a, float b) { return __fdividef(a, b); }
__device__ inline float approximate_reciprocal(float x) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}
/// 2^x; 0 below 2^−126.
__device__ inline float approximate_power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
__device__ inline float approximate_root(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}

/// Byte `i` of the word, over the three upper bytes of `over`: an instruction.
__device__ inline std::uint32_t byte_over(std::uint32_t word, int i, std::uint32_t over) {
  return __byte_perm(word, over, 0x7650u | static_cast<unsigned>(i));
}
/// The lowest bytes of four words, the first one lowest: three instructions.
__device__ inline std::uint32_t lowest_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                             std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/// Enqueues the kernel; what is wrong with the launch is thrown at once.
template <typename... Parameters, typename... Arguments>
void start(const Launch& launch, const char* name, void (*kernel)(Parameters...), dim3 blocks,
           dim3 threads, std::size_t shared_bytes, const Arguments&... arguments) {
  kernel<<<blocks, threads, shared_bytes, launch.stream>>>(arguments...);
  check_launch(name);
}

/// Blocks of so many threads that one multiprocessor holds at a time: a kernel whose blocks each do
/// much starts no more than that, or the last ones run alone.
template <typename... Parameters>
unsigned resident_blocks(void (*kernel)(Parameters...), unsigned threads,
                         std::size_t shared_bytes) {
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads),
                                                shared_bytes);
  return blocks > 0 ? static_cast<unsigned>(blocks) : 1;
}

/// Shared memory that a block of the device may ask for.
inline std::int64_t shared_room() {
  int device = 0, bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes;
}

/// As start(); more shared memory than every block has must be asked for.
template <typename... Parameters, typename... Arguments>
void start_with_room(const Launch& launch, const char* name, void (*kernel)(Parameters...),
                     dim3 blocks, dim3 threads, std::size_t shared_bytes,
                     const Arguments&... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shared_bytes));  // refused, and the launch tells it
  start(launch, name, kernel, blocks, threads, shared_bytes, arguments...);
}
#else
inline float approximate_quotient(float a, float b) { return a / b; }
inline float approximate_reciprocal(float x) { return 1.0f / x; }
inline float approximate_power_of_two(float x) { return exp2f(x); }
inline float approximate_root(float x) { return sqrtf(x); }

inline std::uint32_t byte_over(std::uint32_t word, int i, std::uint32_t over) {
  return (word >> 8 * i & 0xffu) | (over & 0xffffff00u);
}
inline std::uint32_t lowest_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                  std::uint32_t d) {
  return (a & 0xffu) | (b & 0xffu) << 8 | (c & 0xffu) << 16 | d << 24;
}

template <typename T>
float to_fp32(T x) {
  return to_float(x);
}
template <typename T>
T rounded_to(float x) {
  return from_float<T>(x);
}
template <typename T>
void round_pair(float x, float y, T* to) {
  to[0] = from_float<T>(x), to[1] = from_float<T>(y);
}

template <typename... Parameters, typename... Arguments>
void start(const Launch&, const char* name, void (*kernel)(Parameters...), dim3 blocks,
           dim3 threads, std::size_t shared_bytes, const Arguments&... arguments) {
  emulation::run(name, blocks, threads, shared_bytes, [&] { kernel(arguments...); });
  check_launch(name);
}

inline std::int64_t shared_room() { return 48 * 1024; }

template <typename... Parameters, typename... Arguments>
void start_with_room(const Launch& launch, const char* name, void (*kernel)(Parameters...),
                     dim3 blocks, dim3 threads, std::size_t shared_bytes,
                     const Arguments&... arguments) {
  start(launch, name, kernel, blocks, threads, shared_bytes, arguments...);
}

template <typename... Parameters>
unsigned resident_blocks(void (*)(Parameters...), unsigned, std::size_t) {
  return 3;
}
#endif

/// A NaN stays: it is no larger and no smaller than anything, so it is asked for. Devices from
/// sm_80 on have an instruction for it.
__device__ inline float max_or_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
#else
  return a > b || a != a ? a : b;
#endif
}
__device__ inline float min_or_nan(float a, float b) { return -max_or_nan(-a, -b); }

/// e^x within 2 + |1.2 · x| units, which is what x · log2 e loses (as __expf()).
__device__ inline float approximate_power(float x) {
  return approximate_power_of_two(x * 1.44269504f);
}

/// Shared memory that every device gives a block without being asked.
inline constexpr std::int64_t shared_limit = 48 * 1024;

/// Threads per block where nothing asks for another number: 8 blocks fill a multiprocessor.
inline constexpr unsigned usual_threads = 256;

/// Enough blocks for `items` threads, but not more than keep every multiprocessor busy: kernels
/// walk in strides of the whole grid.
inline unsigned blocks_for(const Launch& launch, std::int64_t items,
                           unsigned threads = usual_threads) {
  // 32 times what runs at once: so many that the last, partly filled, wave costs little.
  const std::int64_t most = std::int64_t{launch.processors} * 32 * 8;
  const std::int64_t wanted = (items + threads - 1) / threads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

__device__ inline std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t threads_of_grid() { return std::int64_t{gridDim.x} * blockDim.x; }

}  // namespace tidemark::cuda
