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

/// sums [n] = Σ of `x` [..., n] over all leading axes, whatever its strides. fp32, in pieces of
/// 64 rows that are added up, so that the error of a long sum stays near that of its pieces.
/// Takes slots 0 to 2 of the workspace.
void sum_rows(const Array& x, const Array& sums, Workspace& workspace);

}  // namespace tidemark::cpu
