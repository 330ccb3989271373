// Products of small matrices in shared memory by one warp: 16 rows of A, N columns.
//
// The sums lie in registers as the tensor cores leave them. Of each 16 × 8 piece j, lane l holds
//   sums[j][0], [1]  row l / 4,      columns 8j + 2 (l mod 4) and the next one
//   sums[j][2], [3]  row l / 4 + 8,  the same columns
// The plain loops below own the same elements, so that everything around a product is one text for
// fp32 and for devices whose tensor cores lack these instructions (before compute capability 8.0).
#pragma once

#include <cmath>

#include "kernels/cuda/device.cuh"

namespace tidemark::cuda {

/// 2^x, to within two units in the last place; below the normal numbers 0.
__device__ inline float power_of_2(float x) {
#if defined(__CUDACC__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

template <int N>
struct WarpSums {
  static constexpr int pieces = N / 8;
  float of[pieces][4] = {};

  __device__ static int row(int k) {
    return static_cast<int>(threadIdx.x % warp_size) / 4 + (k < 2 ? 0 : 8);
  }
  __device__ static int column(int piece, int k) {
    return 8 * piece + 2 * static_cast<int>(threadIdx.x % 4) + k % 2;
  }
};

/// Calls f(row, column, sum) for each element that this lane owns.
template <int N, typename F>
__device__ inline void for_elements(WarpSums<N>& sums, F&& f) {
  TIDEMARK_UNROLL
  for (int piece = 0; piece < WarpSums<N>::pieces; ++piece) {
    TIDEMARK_UNROLL
    for (int k = 0; k < 4; ++k) f(sums.row(k), sums.column(piece, k), sums.of[piece][k]);
  }
}

/// A matrix in shared memory whose rows are `pitch` elements apart.
template <typename T>
struct SharedMatrix {
  T* data;
  int pitch;
  __device__ T* row(int i) const { return data + i * pitch; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TIDEMARK_TENSOR_CORES 1

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
/// Four 8 × 8 matrices; lane l gives the address of row l mod 8 of matrix l / 8.
__device__ inline void load_matrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ inline void load_transposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
template <typename T>
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
  if constexpr (__is_same(T, BFloat16)) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
#elif defined(TIDEMARK_EMULATED_TENSOR_CORES)
#define TIDEMARK_TENSOR_CORES 1

inline void load_matrices(unsigned (&r)[4], const void* row) {
  emulation::load_four(r, row, false);
}
inline void load_transposed(unsigned (&r)[4], const void* row) {
  emulation::load_four(r, row, true);
}
template <typename T>
void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulation::multiply_add<T>(c, a, {b0, b1});
}
#endif

#if defined(TIDEMARK_TENSOR_CORES)
/// Registers of two 16-bit elements each.
template <typename T>
__device__ inline unsigned rounded_pair(float x, float y) {
  static_assert(sizeof(T) == 2);
  T pair[2];
  round_pair(x, y, pair);
  unsigned bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}

/// 16 × 16 of A: rows of the warp, columns from k on.
template <typename T>
__device__ inline void load_a(unsigned (&r)[4], SharedMatrix<T> a, int k) {
  const int lane = static_cast<int>(threadIdx.x % warp_size);
  load_matrices(r, a.row(lane % 16) + k + lane / 16 * 8);
}
#endif

/// sums += A[16, k] · B[N, k]ᵀ. k is a multiple of 16, of 4 for fp32; N of 16, of 8 for fp32.
template <int N, typename T>
__device__ inline void add_product_transposed(WarpSums<N>& sums, SharedMatrix<T> a,
                                              SharedMatrix<T> b, int depth) {
#if defined(TIDEMARK_TENSOR_CORES)
  if constexpr (sizeof(T) == 2) {
    const int lane = static_cast<int>(threadIdx.x % warp_size);
    const int row = lane % 8 + lane / 16 * 8, part = lane / 8 % 2 * 8;
    for (int k = 0; k < depth; k += 16) {
      unsigned fa[4];
      load_a(fa, a, k);
      TIDEMARK_UNROLL
      for (int piece = 0; piece < N / 8; piece += 2) {
        unsigned fb[4];
        load_matrices(fb, b.row(8 * piece + row) + k + part);
        multiply_add<T>(sums.of[piece], fa, fb[0], fb[1]);
        multiply_add<T>(sums.of[piece + 1], fa, fb[2], fb[3]);
      }
    }
    return;
  }
#endif
  const int row = sums.row(0), column = sums.column(0, 0);
  const T *a0 = a.row(row), *a1 = a.row(row + 8);
  for (int k = 0; k < depth; k += 4) {
    float x0[4], x1[4];
    TIDEMARK_UNROLL
    for (int i = 0; i < 4; ++i) x0[i] = to_fp32(a0[k + i]), x1[i] = to_fp32(a1[k + i]);
    TIDEMARK_UNROLL
    for (int piece = 0; piece < N / 8; ++piece) {
      TIDEMARK_UNROLL
      for (int c = 0; c < 2; ++c) {
        const T* y = b.row(8 * piece + column + c) + k;
        TIDEMARK_UNROLL
        for (int i = 0; i < 4; ++i) {
          sums.of[piece][c] += x0[i] * to_fp32(y[i]);
          sums.of[piece][2 + c] += x1[i] * to_fp32(y[i]);
        }
      }
    }
  }
}

/// sums += A[16, k] · B[k, N], by plain loops.
template <int N, typename T>
__device__ inline void add_product(WarpSums<N>& sums, SharedMatrix<T> a, SharedMatrix<T> b,
                                   int depth) {
  const int row = sums.row(0), column = sums.column(0, 0);
  const T *a0 = a.row(row), *a1 = a.row(row + 8);
  for (int k = 0; k < depth; ++k) {
    const float x0 = to_fp32(a0[k]), x1 = to_fp32(a1[k]);
    const T* y = b.row(k) + column;
    TIDEMARK_UNROLL
    for (int piece = 0; piece < N / 8; ++piece) {
      TIDEMARK_UNROLL
      for (int c = 0; c < 2; ++c) {
        const float z = to_fp32(y[8 * piece + c]);
        sums.of[piece][c] += x0 * z;
        sums.of[piece][2 + c] += x1 * z;
      }
    }
  }
}

/// sums += A[16, K] · B[K, N], A rounded to T. Tensor cores take A as they leave their sums: two
/// pieces side by side are one operand. The plain loops find it in `space`, the warp's own.
template <int N, int K, typename T>
__device__ inline void add_product_of_sums(WarpSums<N>& sums, WarpSums<K>& a, SharedMatrix<T> space,
                                           SharedMatrix<T> b) {
#if defined(TIDEMARK_TENSOR_CORES)
  if constexpr (sizeof(T) == 2) {
    const int lane = static_cast<int>(threadIdx.x % warp_size);
    const int row = lane % 16, part = lane / 16 * 8;
    TIDEMARK_UNROLL
    for (int k = 0; k < K; k += 16) {
      const auto &left = a.of[k / 8], &right = a.of[k / 8 + 1];
      const unsigned fa[4] = {rounded_pair<T>(left[0], left[1]), rounded_pair<T>(left[2], left[3]),
                              rounded_pair<T>(right[0], right[1]),
                              rounded_pair<T>(right[2], right[3])};
      TIDEMARK_UNROLL
      for (int piece = 0; piece < N / 8; piece += 2) {
        unsigned fb[4];
        load_transposed(fb, b.row(k + row) + 8 * piece + part);
        multiply_add<T>(sums.of[piece], fa, fb[0], fb[1]);
        multiply_add<T>(sums.of[piece + 1], fa, fb[2], fb[3]);
      }
    }
    return;
  }
#endif
  __syncwarp();  // what was there has been read
  for_elements(a, [&](int row, int column, float x) { space.row(row)[column] = rounded_to<T>(x); });
  __syncwarp();
  add_product(sums, space, b, K);
}

}  // namespace tidemark::cuda
