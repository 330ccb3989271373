// y = x · Wᵀ + b: rows are merged over all leading axes whose strides allow it, so the usual layer
// is one call of gemm() in each direction.
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/sums.h"
#include "kernels/linear/linear.h"

namespace tidemark::cpu {
namespace {

/// The rows along the last axes of two arrays that agree in all others, as pairs of matrices with
/// as many rows as strides allow.
template <typename Body>
void for_row_blocks(const Array& first, const Array& second, Body&& body) {
  const RunSpace space(first.shape.with_back(1), std::array{&first, &second}, false);
  const bool is_row = space.rank() == 0;
  const auto matrix = [&](const Array& array, std::size_t k, std::int64_t offset) {
    const std::int64_t rows = is_row ? 1 : space.extent(space.rank() - 1);
    const std::int64_t stride = is_row ? 0 : space.stride(space.rank() - 1, k);
    return Matrix{array.data + offset,
                  array.dtype,
                  rows,
                  array.shape.back(),
                  stride / size_of(array.dtype),
                  array.strides[array.shape.rank() - 1]};
  };
  space.for_outer(is_row ? 0 : 1, [&](const RunSpace::Offsets& offsets) {
    body(matrix(first, 0, offsets[0]), matrix(second, 1, offsets[1]));
  });
}

Matrix weight_matrix(const Array& weight) { return last_axes(weight, weight.data); }

}  // namespace

void linear_forward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &weight = call.inputs[1], &y = call.outputs[0];
  GemmOptions options;
  if (call.inputs.size() > 2 && call.inputs[2]) {
    const Array& bias = call.inputs[2];
    options.bias = {bias.data, bias.dtype, bias.strides[0]};
  }
  for_row_blocks(x, y, [&](const Matrix& rows, const Matrix& results) {
    gemm(rows, weight_matrix(weight).transposed(), results, options, workspace);
  });
}

void linear_backward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &weight = call.inputs[1], &dy = call.d_outputs[0];
  if (!dy) {
    for (const Array& gradient : call.d_inputs) set_zero(gradient);
    return;
  }
  if (const Array& dx = call.d_inputs[0])
    for_row_blocks(dy, dx, [&](const Matrix& rows, const Matrix& results) {
      gemm(rows, weight_matrix(weight), results, {}, workspace);
    });
  if (const Array& dw = call.d_inputs[1]) {
    const Products products = [&](const Factors& take) {
      for_row_blocks(dy, x, [&](const Matrix& errors, const Matrix& rows) {
        take(errors.transposed(), rows);
      });
    };
    gemm_sum(products, weight_matrix(dw), {}, workspace);
  }
  if (call.d_inputs.size() > 2 && call.d_inputs[2]) sum_rows(dy, call.d_inputs[2], workspace);
}

}  // namespace tidemark::cpu
