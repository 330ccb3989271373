// The inner loops of the norms: one row of fp32.
#pragma once

#include "kernels/norm/norm.h"

namespace tidemark::cpu {

struct Moments {
  float mean = 0, rstd = 0;
};
/// Of the row; not centered: mean is 0 and rstd the reciprocal of the root mean square.
Moments moments(const float* x, std::int64_t n, double epsilon, bool is_centered);

/// z = (x − mean)·rstd
void normalize(std::int64_t n, float* z, const float* x, Moments of_row);
/// y = (x − mean)·rstd·γ + β, in one pass
void normalize_and_scale(std::int64_t n, float* y, const float* x, Moments of_row,
                         const float* gamma, const float* beta);

/// Σ g and Σ g·z
struct GradientSums {
  float g = 0, gz = 0;
};
/// z = (x − mean)·rstd and g = dy·γ, in one pass with their sums
GradientSums normalize_with_gradient(std::int64_t n, float* z, float* g, const float* x,
                                     Moments of_row, const float* dy, const float* gamma);
/// dx = rstd·(g − mean(g) − z·mean(g·z)); not centered: without mean(g).
void norm_gradient(std::int64_t n, float* dx, const float* g, const float* z, float rstd,
                   GradientSums sums, bool is_centered);
/// dγ += dy·z and dβ += dy
void add_affine(std::int64_t n, float* d_gamma, float* d_beta, const float* dy, const float* z);

}  // namespace tidemark::cpu
