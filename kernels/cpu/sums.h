// Small loops that several kernels share: zeros, rows by number, and sums. The order of summation
// depends on lengths alone, so that the bits are the same on every machine and in every run.
#pragma once

#include "kernels/cpu/rows.h"
#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

/// Every element of the array; an absent one is left alone.
void set_zero(const Array& array);

/// Row `i` along the last axis, counted in row-major order and from the start again behind the
/// last.
Run nth_row(const Array& x, std::int64_t i);

/// sums[i] += factor · values[i]
void add_to(float* sums, const float* values, std::int64_t n, float factor = 1);

/// Σ values
float sum(const float* values, std::int64_t n);

/// Σ a · b
float dot(const float* a, const float* b, std::int64_t n);

/// total += x, where `lost` is what earlier additions lost (Kahan, doi 10.1145/363707.363723): the
/// error does not grow with the number of terms.
void add_exactly(const float* x, std::int64_t n, float* total, float* lost);

/// The same for four rows, one after the other.
using FourRows = std::array<const float*, 4>;
void add_exactly(const FourRows& rows, std::int64_t n, float* total, float* lost);

/// Σ over rows of n numbers each. Plain sums of 16 rows lose less than 16 roundings; they are
/// added up exactly, and the loop for that, which moves four times the memory, runs seldom.
class RowSums {
 public:
  /// Takes the workspace's piece 7.
  RowSums(std::int64_t n, Workspace& workspace);

  /// The next row is added to these; then comes row_done().
  float* sums() { return partial_; }
  void row_done() {
    if (++rows_ % rows_of_a_piece == 0) flush();
  }
  /// Of all rows; the last thing to ask for.
  const float* total() {
    flush();
    return total_;
  }

 private:
  static constexpr std::int64_t rows_of_a_piece = 16;
  void flush();

  std::int64_t n_, rows_ = 0;
  float *partial_, *total_, *lost_;
};

/// sums [n] = Σ of `x` [..., n] over all leading axes, whatever its strides, as RowSums. Takes the
/// pieces 0 and 7 of the workspace.
void sum_rows(const Array& x, const Array& sums, Workspace& workspace);

}  // namespace tidemark::cpu
