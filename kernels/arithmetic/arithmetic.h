// Arithmetic that formulas have beside the known kinds' (elementwise.h). Shapes are aligned at
// their ends, and an axis of one element repeats.
//
//   Zeros     y = 0, whatever the inputs
//   Sum       x → y: summed over the axis Settings::axis, which y lacks, or where y has one element
//             or no axes; dx = dy, spread
//   Divide    y = a / b     da = dy / b, db = −Σ dy·a / b²
//   Subtract  y = a − b, or a − 1 without b     da = dy, db = −Σ dy
//
// Any strides and data dtypes; fp32 arithmetic, one rounding. An absent dy counts as zero. Nothing
// overlaps. NaN and infinities as in IEEE arithmetic.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark {

/// y of a Sum with the axis that it lacks, of one element.
inline Array with_axis(const Array& y, std::size_t rank, std::int64_t axis) {
  if (y.shape.rank() == rank || y.shape.rank() == 0) return y;
  Array wider{y.data, y.dtype, {}, {}};
  std::array<std::int64_t, Shape::max_rank> dims{};
  for (std::size_t i = 0, from = 0; i < rank; ++i) {
    const bool is_missing = i == static_cast<std::size_t>(axis);
    dims[i] = is_missing ? 1 : y.shape[from];
    wider.strides[i] = is_missing ? 0 : y.strides[from];
    if (!is_missing) ++from;
  }
  wider.shape = Shape(std::span<const std::int64_t>(dims).first(rank));
  return wider;
}

}  // namespace tidemark

namespace tidemark::cpu {

void zeros_forward(const Call& call, Workspace& workspace);
void sum_forward(const Call& call, Workspace& workspace);
void sum_backward(const Call& call, Workspace& workspace);
void divide_forward(const Call& call, Workspace& workspace);
void divide_backward(const Call& call, Workspace& workspace);
void subtract_forward(const Call& call, Workspace& workspace);
void subtract_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void zeros_forward(const Call& call, Launch& launch);
void sum_forward(const Call& call, Launch& launch);
void sum_backward(const Call& call, Launch& launch);
void divide_forward(const Call& call, Launch& launch);
void divide_backward(const Call& call, Launch& launch);
void subtract_forward(const Call& call, Launch& launch);
void subtract_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
