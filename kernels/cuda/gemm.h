// Matrix products of the CUDA kernels, by cuBLASLt in the plugin.
#pragma once

#include "kernels/cuda/launch.h"

namespace tidemark::cuda {

/// A matrix in memory, row-major: element (i, j) of the stored matrix is at i · row_stride + j.
struct GemmOperand {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
  std::int64_t row_stride = 0;
  bool transposed = false;        ///< the product reads the stored matrix's transpose
  std::int64_t batch_stride = 0;  ///< elements from one product to the next; 0 = the same matrix
};

/// C = alpha · A[m, k] · B[k, n] + beta · C + bias, `batch` times; sums in fp32, rounded once. C is
/// never transposed. beta 0 reads nothing of C. A and B are of one dtype; C is too, or fp32.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmOperand a, b, c;
  float alpha = 1, beta = 0;
  const std::byte* bias = nullptr;  ///< n elements of C's dtype, or none; only where beta is 0
};

void gemm(Launch& launch, const Gemm& product);

}  // namespace tidemark::cuda
