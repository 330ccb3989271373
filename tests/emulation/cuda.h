// A small CUDA on the CPU, for tests: blocks run one after the other, the threads of a block are
// fibers that change at barriers and shuffles only. It is stricter than the hardware: a barrier
// that not all threads of the block reach, or reach at different lines, and a shuffle that misses a
// lane are errors. A missing barrier shows up because tests run every kernel with its threads in
// several orders, and shared memory begins as garbage.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after the other, on one thread

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint4 {
  alignas(16) unsigned x;
  unsigned y, z, w;
};
struct uint2 {
  alignas(8) unsigned x;
  unsigned y;
};

namespace tidemark::emulation {

/// A line of a kernel. (Clang 14 has no tidemark::emulation::Place.)
struct Place {
  const char* file;
  unsigned line_number;

  static constexpr Place current(const char* file = __builtin_FILE(),
                                 unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file; }
  constexpr unsigned line() const { return line_number; }
  constexpr bool operator==(const Place&) const = default;
};

/// In which order threads of a block, and blocks, run where the program leaves it open.
enum class Order : std::uint8_t { Forward, Backward, Shuffled };
void run_in(Order order);

/// Where a thread is; read through the macros threadIdx, blockIdx, blockDim and gridDim.
struct Position {
  dim3 thread, block, block_size, grid_size;
};
const Position& position();

/// Runs `body` as every thread of the grid. Throws std::runtime_error with the kernel's name on
/// what CUDA leaves undefined.
void run(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
         const std::function<void()>& body);

std::byte* dynamic_shared();
void block_barrier(const tidemark::emulation::Place& where);
/// Every lane of the warp gives a word and gets the one of lane `from`.
std::uint64_t exchange(unsigned mask, std::uint64_t word, unsigned from,
                       const tidemark::emulation::Place& where);
unsigned lane();
[[noreturn]] void trap();
/// Kernels run since the program began: a test that ran none tested nothing.
std::size_t kernels_run();

template <typename T>
T exchange_value(unsigned mask, T value, unsigned from, const tidemark::emulation::Place& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = exchange(mask, word, from, where);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace tidemark::emulation

#define threadIdx (::tidemark::emulation::position().thread)
#define blockIdx (::tidemark::emulation::position().block)
#define blockDim (::tidemark::emulation::position().block_size)
#define gridDim (::tidemark::emulation::position().grid_size)

inline void __syncthreads(
    tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  tidemark::emulation::block_barrier(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  tidemark::emulation::exchange(mask, 0, tidemark::emulation::lane(), where);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int from,
              tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  return tidemark::emulation::exchange_value(mask, value, static_cast<unsigned>(from) % 32, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits,
                  tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  const unsigned from = (tidemark::emulation::lane() ^ static_cast<unsigned>(bits)) % 32;
  return tidemark::emulation::exchange_value(mask, value, from, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                   tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  const unsigned lane = tidemark::emulation::lane();
  return tidemark::emulation::exchange_value(mask, value, lane + delta < 32 ? lane + delta : lane,
                                             where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                 tidemark::emulation::Place where = tidemark::emulation::Place::current()) {
  const unsigned lane = tidemark::emulation::lane();
  return tidemark::emulation::exchange_value(mask, value, lane >= delta ? lane - delta : lane,
                                             where);
}

template <typename T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = static_cast<T>(old + value);
  return old;
}
template <typename T>
T atomicMax(T* address, T value) {
  const T old = *address;
  *address = old < value ? value : old;
  return old;
}
template <typename T>
T atomicExch(T* address, T value) {
  const T old = *address;
  *address = value;
  return old;
}

[[noreturn]] void __trap();

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

#include "tests/emulation/tensor_cores.h"  // what it needs stands above
