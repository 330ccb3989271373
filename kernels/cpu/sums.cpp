#include "kernels/cpu/sums.h"

#include <algorithm>

#include "kernels/cpu/clones.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t rows_of_a_piece = 64;

// Sums keep sixteen results side by side, the width of the widest registers.
constexpr std::int64_t lanes = 16;

TIDEMARK_CLONES void add_floats(float* __restrict sums, const float* __restrict values,
                                std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += values[i];
}

TIDEMARK_CLONES void add_scaled(float* __restrict sums, const float* __restrict values,
                                std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += factor * values[i];
}

TIDEMARK_CLONES float sum_of(const float* x, std::int64_t n) {
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane];
  for (; i < n; ++i) sums[0] += x[i];
  float result = 0;
  for (const float lane : sums) result += lane;
  return result;
}

TIDEMARK_CLONES float dot_of(const float* a, const float* b, std::int64_t n) {
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  float result = 0;
  for (const float lane : sums) result += lane;
  return result;
}

}  // namespace

void set_zero(const Array& array) {
  if (!array) return;
  if (is_dense(array.layout())) {
    std::fill_n(array.data, numel(array.shape) * size_of(array.dtype), std::byte{0});
    return;
  }
  static constexpr std::array<float, longest_run> zeros{};
  for_runs(std::array{&array},
           [](const auto& runs, std::int64_t n) { scatter(zeros.data(), n, runs[0]); });
}

Run nth_row(const Array& x, std::int64_t i) {
  const std::size_t last = x.shape.rank() - 1;
  std::int64_t offset = 0;
  for (std::size_t axis = last; axis-- > 0; i /= x.shape[axis])
    offset += i % x.shape[axis] * x.strides[axis];
  return {x.data + offset * size_of(x.dtype), x.dtype, x.strides[last]};
}

void add_to(float* sums, const float* values, std::int64_t n, float factor) {
  factor == 1 ? add_floats(sums, values, n) : add_scaled(sums, values, n, factor);
}

float sum(const float* values, std::int64_t n) { return sum_of(values, n); }

float dot(const float* a, const float* b, std::int64_t n) { return dot_of(a, b, n); }

void sum_rows(const Array& x, const Array& sums, Workspace& workspace) {
  const std::int64_t n = row_length(x.shape);
  const auto count = static_cast<std::size_t>(n);
  const std::span<float> scratch = workspace.floats(count, 0);
  const std::span<float> piece = workspace.floats(count, 1), total = workspace.floats(count, 2);
  std::ranges::fill(piece, 0.0f);
  std::ranges::fill(total, 0.0f);
  for_rows(std::array{&x}, [&](const auto& rows, std::int64_t i) {
    add_floats(piece.data(), read(rows[0], n, scratch.data()), n);
    if (i % rows_of_a_piece != rows_of_a_piece - 1) return;
    add_floats(total.data(), piece.data(), n);
    std::ranges::fill(piece, 0.0f);
  });
  add_floats(total.data(), piece.data(), n);
  scatter(total.data(), n, {sums.data, sums.dtype, sums.strides[0]});
}

}  // namespace tidemark::cpu
