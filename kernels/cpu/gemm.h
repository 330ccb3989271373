// Matrix products on one core, for any dtype and strides: what linear, matmul, attention and
// convolution are made of. The arithmetic is OpenBLAS's sgemm.
#pragma once

#include <functional>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

/// Element (i, j) is i · row_stride + j · column_stride elements behind the first one.
struct Matrix {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 1;

  Matrix transposed() const { return {data, dtype, columns, rows, column_stride, row_stride}; }
  Matrix block(std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width) const {
    return {data + (i * row_stride + j * column_stride) * size_of(dtype),
            dtype,
            height,
            width,
            row_stride,
            column_stride};
  }
  Run row(std::int64_t i) const {
    return {data + i * row_stride * size_of(dtype), dtype, column_stride};
  }
};

/// Row-major fp32 scratch, `columns` wide.
inline Matrix dense_matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return {reinterpret_cast<std::byte*>(data), DType::Float32, rows, columns, columns, 1};
}

/// The last two axes of an array, at `data` of one of its batches.
inline Matrix last_axes(const Array& array, std::byte* data) {
  const std::size_t rank = array.shape.rank();
  return {data,
          array.dtype,
          array.shape.back(1),
          array.shape.back(),
          array.strides[rank - 2],
          array.strides[rank - 1]};
}

struct GemmOptions {
  float alpha = 1;
  bool adds = false;  ///< c += …; otherwise c is overwritten
  Run bias{};         ///< one element per column of c, or per row; absent = none. Not with `adds`
  bool bias_by_row = false;
};

/// c = alpha · a · b + bias. Sums are fp32, in an order that depends on shapes and strides alone;
/// c is rounded once. Operands that sgemm cannot read as they lie are copied to fp32, block by
/// block: that takes slots 0 to 2 of the workspace, 8 MiB in all, whatever the shapes.
/// NaN and infinity propagate as in the sums; 0 · ∞ is NaN.
void gemm(const Matrix& a, const Matrix& b, const Matrix& c, const GemmOptions& options,
          Workspace& workspace);

/// Calls back with the factors of each product of a sum, in the same order each time.
using Factors = std::function<void(const Matrix& a, const Matrix& b)>;
using Products = std::function<void(const Factors& take)>;

/// c = alpha · Σ a · b + bias over products of equal shapes, still rounded once.
void gemm_sum(const Products& products, const Matrix& c, const GemmOptions& options,
              Workspace& workspace);

}  // namespace tidemark::cpu
