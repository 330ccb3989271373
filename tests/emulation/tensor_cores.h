// The warp's matrix instructions, written from their description in NVIDIA's PTX ISA (sections on
// ldmatrix and mma.m16n8k16), so that kernels which use them are tested without a GPU. Slow: every
// element comes from the lane that holds it by a shuffle.
#pragma once

#include "kernels/number_formats.h"
#include "tests/emulation/cuda.h"

#define TIDEMARK_EMULATED_TENSOR_CORES 1

namespace tidemark::emulation {

/// The two 16-bit elements of a register, the first in the lower half.
inline unsigned packed(std::uint16_t low, std::uint16_t high) {
  return low | static_cast<unsigned>(high) << 16;
}

/// ldmatrix.x4: register m gets two elements of matrix m, of whose row i lane 8m + i gives the
/// address: row lane / 4, elements 2 (lane mod 4) and the next; transposed: those rows of column
/// lane / 4.
inline void load_four(unsigned (&r)[4], const void* row, bool transposed) {
  const int lane_number = static_cast<int>(lane());
  for (int m = 0; m < 4; ++m) {
    const int first = lane_number / 4, second = 2 * (lane_number % 4);
    const auto element = [&](int i, int j) {  // of matrix m
      const auto* const from = reinterpret_cast<const std::uint16_t*>(
          __shfl_sync(0xffffffffu, reinterpret_cast<std::uintptr_t>(row), 8 * m + i));
      return from[j];
    };
    const std::uint16_t low = transposed ? element(second, first) : element(first, second);
    const std::uint16_t high = transposed ? element(second + 1, first) : element(first, second + 1);
    r[m] = packed(low, high);
  }
}

/// mma.m16n8k16: c += a · b. Where element (i, k) of a and (k, j) of b are held:
///   a: lane 4 (i mod 8) + k / 2 mod 4, register i / 8 + 2 (k / 8), half k mod 2
///   b: lane 4 j + k / 2 mod 4, register k / 8, half k mod 2
///   c: lane 4 (i mod 8) + j / 2, register 2 (i / 8) + j mod 2
template <typename T>
void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  // Registers 2 q and 2 q + 1 of another lane; all lanes give the same two, to different askers.
  const auto pair = [](const unsigned* registers, int q, int owner) {
    const std::uint64_t both = registers[2 * q] | std::uint64_t{registers[2 * q + 1]} << 32;
    return __shfl_sync(0xffffffffu, both, owner);
  };
  const auto element = [](std::uint64_t both, int number, int half) {
    return to_float(T{static_cast<std::uint16_t>(both >> (32 * number + 16 * half))});
  };
  const int lane_number = static_cast<int>(lane()), row = lane_number / 4,
            column = 2 * (lane_number % 4);
  for (int part = 0; part < 4; ++part) {
    const std::uint64_t y[2] = {pair(b, 0, 4 * column + part), pair(b, 0, 4 * column + 4 + part)};
    for (int q = 0; q < 2; ++q) {
      const std::uint64_t x = pair(a, q, 4 * row + part);  // rows i = 0 and 1 of the lane
      for (int half = 0; half < 2; ++half)
        for (int n = 0; n < 4; ++n) c[n] += element(x, n / 2, half) * element(y[n % 2], q, half);
    }
  }
}

}  // namespace tidemark::emulation
