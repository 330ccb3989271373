// Adds and multiplies in loops that the compiler makes vectors of, cloned by instruction set.
#include "kernels/cpu/loops.h"

#include "kernels/cpu/clones.h"

namespace tidemark::cpu {

TIDEMARK_CLONES void add_loop(std::int64_t n, float* __restrict y, const float* a, const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

TIDEMARK_CLONES void multiply_loop(std::int64_t n, float* __restrict y, const float* a,
                                   const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

}  // namespace tidemark::cpu
