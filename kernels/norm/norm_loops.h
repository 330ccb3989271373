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
/// y = a·b
void multiply(std::int64_t n, float* y, const float* a, const float* b);

/// dx = rstd·(g − mean(g) − z·mean(g·z)); not centered: without mean(g).
void norm_gradient(std::int64_t n, float* dx, const float* g, const float* z, float rstd,
                   bool is_centered);

/// dγ = Σ dy·z and dβ = Σ dy over rows.
class AffineGradients {
 public:
  /// Takes the workspace's piece 7.
  AffineGradients(std::int64_t n, Workspace& workspace);
  void add(const float* dy, const float* z);
  /// Absent ones are left out.
  void write_to(const Array& d_gamma, const Array& d_beta);

 private:
  void flush();

  std::int64_t n_, rows_ = 0;
  float *partial_, *total_, *lost_;  ///< of dγ, then of dβ
};

}  // namespace tidemark::cpu
