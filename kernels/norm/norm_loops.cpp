// One row in vector lanes: statistics in two passes, normalization, gradients.
#include "kernels/norm/norm_loops.h"

#include <cmath>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES float squared_deviations(const float* x, std::int64_t n, float mean) {
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) sums[k] += (x[i + k] - mean) * (x[i + k] - mean);
  for (std::int64_t k = 0; i < n; ++i, ++k) sums[k] += (x[i] - mean) * (x[i] - mean);
  return sum_of_lanes(sums);
}

TIDEMARK_CLONES void gradient_loop(std::int64_t n, float* __restrict dx, const float* g,
                                   const float* __restrict z, float rstd, float mean_g,
                                   float mean_gz) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = rstd * (g[i] - mean_g - z[i] * mean_gz);
}

}  // namespace

Moments moments(const float* x, std::int64_t n, double epsilon, bool is_centered) {
  const auto count = static_cast<float>(n);
  const float mean = is_centered ? sum(x, n) / count : 0.0f;
  const float square = squared_deviations(x, n, mean) / count;
  return {mean, 1.0f / std::sqrt(square + static_cast<float>(epsilon))};
}

TIDEMARK_CLONES void normalize(std::int64_t n, float* __restrict z, const float* __restrict x,
                               Moments of_row) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = (x[i] - of_row.mean) * of_row.rstd;
}

TIDEMARK_CLONES void normalize_and_scale(std::int64_t n, float* __restrict y,
                                         const float* __restrict x, Moments of_row,
                                         const float* __restrict gamma,
                                         const float* __restrict beta) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - of_row.mean) * of_row.rstd * gamma[i] + beta[i];
}

TIDEMARK_CLONES GradientSums normalize_with_gradient(std::int64_t n, float* __restrict z,
                                                     float* __restrict g, const float* __restrict x,
                                                     Moments of_row, const float* __restrict dy,
                                                     const float* __restrict gamma) {
  float sums_g[lanes] = {}, sums_gz[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) {
      const float of_z = (x[i + k] - of_row.mean) * of_row.rstd, of_g = dy[i + k] * gamma[i + k];
      z[i + k] = of_z, g[i + k] = of_g;
      sums_g[k] += of_g, sums_gz[k] += of_g * of_z;
    }
  for (std::int64_t k = 0; i < n; ++i, ++k) {
    z[i] = (x[i] - of_row.mean) * of_row.rstd, g[i] = dy[i] * gamma[i];
    sums_g[k] += g[i], sums_gz[k] += g[i] * z[i];
  }
  return {sum_of_lanes(sums_g), sum_of_lanes(sums_gz)};
}

void norm_gradient(std::int64_t n, float* dx, const float* g, const float* z, float rstd,
                   GradientSums sums, bool is_centered) {
  const auto count = static_cast<float>(n);
  gradient_loop(n, dx, g, z, rstd, is_centered ? sums.g / count : 0.0f, sums.gz / count);
}

TIDEMARK_CLONES void add_affine(std::int64_t n, float* __restrict d_gamma, float* __restrict d_beta,
                                const float* __restrict dy, const float* __restrict z) {
  for (std::int64_t i = 0; i < n; ++i) {
    d_gamma[i] += dy[i] * z[i];
    d_beta[i] += dy[i];
  }
}

}  // namespace tidemark::cpu
