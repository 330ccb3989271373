#include "kernels/norm/norm_loops.h"

#include <cmath>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t lanes = 16;  // partial sums: one vector of the widest instruction set

TIDEMARK_CLONES void squares_loop(const float* x, std::int64_t n, float mean, float* parts) {
  float local[lanes] = {};
  for (std::int64_t i = 0; i + lanes <= n; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) {
      const float d = x[i + k] - mean;
      local[k] += d * d;
    }
  for (std::int64_t k = 0; k < lanes; ++k) parts[k] = local[k];
}

float squared_deviations(const float* x, std::int64_t n, float mean) {
  float parts[lanes];
  squares_loop(x, n, mean, parts);
  for (std::int64_t i = n / lanes * lanes; i < n; ++i)
    parts[i % lanes] += (x[i] - mean) * (x[i] - mean);
  return sum(parts, lanes);
}

TIDEMARK_CLONES void gradient_loop(std::int64_t n, float* __restrict dx, const float* g,
                                   const float* __restrict z, float rstd, float mean_g,
                                   float mean_gz) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = rstd * (g[i] - mean_g - z[i] * mean_gz);
}

TIDEMARK_CLONES void affine_loop(std::int64_t n, float* __restrict d_gamma,
                                 float* __restrict d_beta, const float* __restrict dy,
                                 const float* __restrict z) {
  for (std::int64_t i = 0; i < n; ++i) {
    d_gamma[i] += dy[i] * z[i];
    d_beta[i] += dy[i];
  }
}

// Plain sums of so few rows lose less than 16 roundings, and the compensated loop, which moves
// four times the memory, runs for one row in 16 only.
constexpr std::int64_t rows_between_flushes = 16;

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

TIDEMARK_CLONES void multiply(std::int64_t n, float* __restrict y, const float* __restrict a,
                              const float* __restrict b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void norm_gradient(std::int64_t n, float* dx, const float* g, const float* z, float rstd,
                   bool is_centered) {
  const auto count = static_cast<float>(n);
  const float mean_g = is_centered ? sum(g, n) / count : 0.0f;
  gradient_loop(n, dx, g, z, rstd, mean_g, dot(g, z, n) / count);
}

AffineGradients::AffineGradients(std::int64_t n, Workspace& workspace) : n_(n) {
  const auto width = static_cast<std::size_t>(2 * n);
  const std::span<float> memory = workspace.floats(3 * width, 7);
  std::ranges::fill(memory, 0.0f);
  partial_ = memory.data(), total_ = partial_ + width, lost_ = total_ + width;
}

void AffineGradients::add(const float* dy, const float* z) {
  affine_loop(n_, partial_, partial_ + n_, dy, z);
  if (++rows_ % rows_between_flushes == 0) flush();
}

void AffineGradients::flush() {
  add_exactly(partial_, 2 * n_, total_, lost_);
  std::fill_n(partial_, 2 * n_, 0.0f);
}

void AffineGradients::write_to(const Array& d_gamma, const Array& d_beta) {
  flush();
  const auto as_array = [&](float* values) {
    const Shape shape{n_};
    return array_at(reinterpret_cast<std::byte*>(values), DType::Float32, dense(shape));
  };
  if (d_gamma) assign(d_gamma, as_array(total_));
  if (d_beta) assign(d_beta, as_array(total_ + n_));
}

}  // namespace tidemark::cpu
