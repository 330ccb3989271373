// Batched y = a · b with broadcast batch axes.
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/sums.h"
#include "kernels/linear/linear.h"

namespace tidemark::cpu {
namespace {

using Index = std::array<std::int64_t, Shape::max_rank>;

/// Of a batch axis of the product, counted from its own first axis.
struct Axis {
  std::int64_t extent = 1, stride = 0;
};

std::size_t batch_rank(const Array& y) { return y.shape.rank() - 2; }

/// The operand's axis that lies under axis `axis` of the product.
Axis axis_of(const Array& operand, const Array& y, std::size_t axis) {
  const std::size_t missing = y.shape.rank() - operand.shape.rank();
  if (axis < missing) return {};
  return {operand.shape[axis - missing], operand.strides[axis - missing]};
}

/// The operand's matrix in the product's batch `index`.
Matrix batch_of(const Array& operand, const Array& y, const Index& index) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < batch_rank(y); ++axis) {
    const Axis own = axis_of(operand, y, axis);
    offset += index[axis] % own.extent * own.stride;
  }
  return last_axes(operand, operand.data + offset * size_of(operand.dtype));
}

/// All batches of the product from `first` on, by steps of `step` along each axis.
template <typename Body>
void for_batches(const Array& y, const Index& first, const Index& step, Body&& body) {
  Index index = first;
  for (;;) {
    body(std::as_const(index));
    std::size_t axis = batch_rank(y);
    for (;; --axis) {
      if (axis == 0) return;
      index[axis - 1] += step[axis - 1];
      if (index[axis - 1] < y.shape[axis - 1]) break;
      index[axis - 1] = first[axis - 1];
    }
  }
}

Index all(std::int64_t n) {
  Index index;
  index.fill(n);
  return index;
}

/// Each matrix of `target` is the sum of `factors` over the batches of the product that read it.
template <typename MakeFactors>
void sum_batches(const Array& target, const Array& y, const MakeFactors& factors,
                 Workspace& workspace) {
  Index extent = all(1);
  for (std::size_t axis = 0; axis < batch_rank(y); ++axis)
    extent[axis] = axis_of(target, y, axis).extent;
  for_batches(y, all(0), all(1), [&](const Index& first) {
    for (std::size_t axis = 0; axis < batch_rank(y); ++axis)
      if (first[axis] >= extent[axis]) return;
    const Products products = [&](const Factors& take) {
      for_batches(y, first, extent, [&](const Index& index) { factors(index, take); });
    };
    gemm_sum(products, batch_of(target, y, first), {}, workspace);
  });
}

}  // namespace

void matmul_forward(const Call& call, Workspace& workspace) {
  const Array &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  for_batches(y, all(0), all(1), [&](const Index& index) {
    gemm(batch_of(a, y, index), batch_of(b, y, index), batch_of(y, y, index), {}, workspace);
  });
}

void matmul_backward(const Call& call, Workspace& workspace) {
  const Array &a = call.inputs[0], &b = call.inputs[1], &dy = call.d_outputs[0];
  if (!dy) {
    for (const Array& gradient : call.d_inputs) set_zero(gradient);
    return;
  }
  if (const Array& da = call.d_inputs[0])
    sum_batches(
        da, dy,
        [&](const Index& index, const Factors& take) {
          take(batch_of(dy, dy, index), batch_of(b, dy, index).transposed());
        },
        workspace);
  if (const Array& db = call.d_inputs[1])
    sum_batches(
        db, dy,
        [&](const Index& index, const Factors& take) {
          take(batch_of(a, dy, index).transposed(), batch_of(dy, dy, index));
        },
        workspace);
}

}  // namespace tidemark::cpu
