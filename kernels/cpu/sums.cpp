// Sums in fixed lanes and blocks, and adds rows with the lost part of each addition kept.
#include "kernels/cpu/sums.h"

#include <algorithm>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/lanes.h"

namespace tidemark::cpu {
namespace {

// One compensated addition.
TIDEMARK_INLINE void add_one(float x, float& total, float& lost) {
  const float term = x - lost, next = total + term;
  const float loss = (next - total) - term;
  lost = loss - loss == 0.0f ? loss : 0.0f;  // an infinite total has lost nothing
  total = next;
}

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
    for (std::int64_t k = 0; k < lanes; ++k) sums[k] += x[i + k];
  for (std::int64_t k = 0; i < n; ++i, ++k) sums[k] += x[i];
  return sum_of_lanes(sums);
}

TIDEMARK_CLONES float dot_of(const float* a, const float* b, std::int64_t n) {
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) sums[k] += a[i + k] * b[i + k];
  for (std::int64_t k = 0; i < n; ++i, ++k) sums[k] += a[i] * b[i];
  return sum_of_lanes(sums);
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

TIDEMARK_CLONES void add_exactly(const float* __restrict x, std::int64_t n, float* __restrict total,
                                 float* __restrict lost) {
  for (std::int64_t i = 0; i < n; ++i) add_one(x[i], total[i], lost[i]);
}

TIDEMARK_CLONES void add_exactly(const FourRows& rows, std::int64_t n, float* __restrict total,
                                 float* __restrict lost) {
  const float* __restrict a = rows[0];
  const float* __restrict b = rows[1];
  const float* __restrict c = rows[2];
  const float* __restrict d = rows[3];
  for (std::int64_t i = 0; i < n; ++i) {
    float sum = total[i], loss = lost[i];
    add_one(a[i], sum, loss), add_one(b[i], sum, loss);
    add_one(c[i], sum, loss), add_one(d[i], sum, loss);
    total[i] = sum, lost[i] = loss;
  }
}

RowSums::RowSums(std::int64_t n, Workspace& workspace) : n_(n) {
  const std::span<float> memory = workspace.floats(static_cast<std::size_t>(3 * n), 7);
  std::ranges::fill(memory, 0.0f);
  partial_ = memory.data(), total_ = partial_ + n, lost_ = total_ + n;
}

void RowSums::flush() {
  add_exactly(partial_, n_, total_, lost_);
  std::fill_n(partial_, n_, 0.0f);
}

void sum_rows(const Array& x, const Array& sums, Workspace& workspace) {
  const std::int64_t n = row_length(x.shape);
  float* const scratch = workspace.floats(static_cast<std::size_t>(n), 0).data();
  RowSums of_rows(n, workspace);
  for_rows(std::array{&x}, [&](const auto& rows, std::int64_t) {
    add_floats(of_rows.sums(), read(rows[0], n, scratch), n);
    of_rows.row_done();
  });
  scatter(of_rows.total(), n, {sums.data, sums.dtype, sums.strides[0]});
}

}  // namespace tidemark::cpu
