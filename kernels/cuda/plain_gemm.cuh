// A matrix product without a library: any strides, dtypes and alignments, one thread per result.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

__device__ inline float element_of(const GemmOperand& matrix, std::int64_t batch, std::int64_t i,
                                   std::int64_t j) {
  const std::int64_t row = matrix.transposed ? j : i, column = matrix.transposed ? i : j;
  return load_one(Reader<AnyFloat>{matrix.data, matrix.dtype},
                  batch * matrix.batch_stride + row * matrix.row_stride + column);
}

__global__ void plain_gemm_kernel(Gemm g) {
  const Writer<AnyFloat> c{g.c.data, g.c.dtype};
  for (std::int64_t r = thread_of_grid(); r < g.batch * g.m * g.n; r += threads_of_grid()) {
    const std::int64_t j = r % g.n, i = r / g.n % g.m, batch = r / g.n / g.m;
    float sum = 0;
    for (std::int64_t k = 0; k < g.k; ++k)
      sum += element_of(g.a, batch, i, k) * element_of(g.b, batch, k, j);
    sum *= g.alpha;
    if (g.beta != 0) sum += g.beta * element_of(g.c, batch, i, j);
    if (g.bias != nullptr) sum += load_one(Reader<AnyFloat>{g.bias, g.c.dtype}, j);
    store_one(c, batch * g.c.batch_stride + i * g.c.row_stride + j, sum);
  }
}

/// Slow, and there for every product: for those that the library refuses.
inline void plain_gemm(Launch& launch, const Gemm& g) {
  start(launch, "plain product", plain_gemm_kernel, dim3(blocks_for(launch, g.batch * g.m * g.n)),
        dim3(usual_threads), 0, g);
}

}  // namespace tidemark::cuda
