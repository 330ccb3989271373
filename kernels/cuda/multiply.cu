// Which copies a product needs, and which products of the library it is made of.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/gradients.cuh"
#include "kernels/cuda/multiply.h"
#include "kernels/elementwise/elementwise.h"

namespace tidemark::cuda {
namespace {

enum ProductSlot : std::size_t { slot_a = 4, slot_b, slot_c, slot_bias };

Array dense_scratch(Launch& launch, const Shape& shape, DType dtype, std::size_t slot) {
  std::byte* data = scratch(launch, numel(shape) * size_of(dtype), slot);
  return array_at(data, dtype, dense(shape));
}

Array dense_copy(Launch& launch, const Array& x, DType dtype, std::size_t slot) {
  const Array copy = dense_scratch(launch, x.shape, dtype, slot);
  convert(launch, x, copy);
  return copy;
}

/// The last two axes as the library sees a matrix; unset data = it cannot.
GemmOperand as_operand(const Array& x) {
  const std::size_t rank = x.shape.rank();
  const std::int64_t rows = x.shape.back(1), columns = x.shape.back();
  const std::int64_t by_row = x.strides[rank - 2], by_column = x.strides[rank - 1];
  if ((by_column == 1 || columns == 1) && (by_row >= columns || rows == 1))
    return {x.data, x.dtype, rows == 1 ? columns : by_row};
  if ((by_row == 1 || rows == 1) && (by_column >= rows || columns == 1))
    return {x.data, x.dtype, columns == 1 ? rows : by_column, true};
  return {};
}

/// One axis that all three operands are walked along; stride 0 = repeated.
struct BatchAxis {
  std::int64_t extent;
  std::array<std::int64_t, 3> strides;  ///< of a, b, c
};

std::size_t batch_rank(const Array& x) { return x.shape.rank() - 2; }

/// The extent of axis `axis` of `rank` batch axes; missing ones in front count one.
std::int64_t extent_of(const Array& x, std::size_t axis, std::size_t rank) {
  const std::size_t missing = rank - batch_rank(x);
  return axis < missing ? 1 : x.shape[axis - missing];
}
std::int64_t stride_of(const Array& x, std::size_t axis, std::size_t rank) {
  return x.strides[axis - (rank - batch_rank(x))];
}

/// Appends the axis; two if an operand repeats a whole factor of it.
void append_axis(const std::array<const Array*, 3>& operands, std::size_t axis, std::size_t rank,
                 std::vector<BatchAxis>& axes) {
  std::int64_t whole = 1, part = 1;
  for (const Array* x : operands) whole = std::max(whole, extent_of(*x, axis, rank));
  for (const Array* x : operands) {
    const std::int64_t extent = extent_of(*x, axis, rank);
    if (extent > 1 && extent < whole) part = extent;
  }
  if (part == 1) part = whole;
  BatchAxis outer{whole / part, {}}, inner{part, {}};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::int64_t extent = extent_of(*operands[k], axis, rank);
    if (extent == 1) continue;
    inner.strides[k] = stride_of(*operands[k], axis, rank);
    if (extent == whole) outer.strides[k] = inner.strides[k] * part;
  }
  if (outer.extent > 1) axes.push_back(outer);
  if (inner.extent > 1) axes.push_back(inner);
}

/// Axes that one stride leads through, for all operands, become one.
std::vector<BatchAxis> joined(const std::vector<BatchAxis>& axes) {
  std::vector<BatchAxis> result;
  for (const BatchAxis& axis : axes) {
    const auto follows = [&](const BatchAxis& last) {
      for (std::size_t k = 0; k < 3; ++k)
        if (last.strides[k] != axis.strides[k] * axis.extent) return false;
      return true;
    };
    if (!result.empty() && follows(result.back())) {
      result.back() = {result.back().extent * axis.extent, axis.strides};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

/// How the products of all batches are issued.
struct Batches {
  std::vector<BatchAxis> loops, sums;  ///< one product each; sums: added up into the same c
  BatchAxis strided{1, {}};            ///< within one product of the library

  std::int64_t launches() const {
    std::int64_t count = 1;
    for (const BatchAxis& axis : loops) count *= axis.extent;
    return count;
  }
};

Batches batches_of(const Array& a, const Array& b, const Array& c) {
  const std::size_t rank = std::max({batch_rank(a), batch_rank(b), batch_rank(c)});
  std::vector<BatchAxis> axes;
  for (std::size_t axis = 0; axis < rank; ++axis) append_axis({&a, &b, &c}, axis, rank, axes);
  Batches batches;
  for (const BatchAxis& axis : joined(axes)) {
    (axis.strides[2] == 0 ? batches.sums : batches.loops).push_back(axis);
  }
  // The longest one goes into the library's product.
  const auto longest = std::ranges::max_element(batches.loops, {}, &BatchAxis::extent);
  if (longest != batches.loops.end()) {
    batches.strided = *longest;
    batches.loops.erase(longest);
  }
  return batches;
}

/// Calls body(offsets of a, b, c) for each place of the axes, the last one fastest.
template <typename Body>
void for_places(const std::vector<BatchAxis>& axes, Body&& body, std::size_t axis = 0,
                std::array<std::int64_t, 3> at = {}) {
  if (axis == axes.size()) return body(at);
  for (std::int64_t i = 0; i < axes[axis].extent; ++i) {
    for_places(axes, body, axis + 1, at);
    for (std::size_t k = 0; k < 3; ++k) at[k] += axes[axis].strides[k];
  }
}

void move(GemmOperand& operand, std::int64_t elements) {
  operand.data += elements * size_of(operand.dtype);
}

/// All products, of operands that the library can read.
void issue(Launch& launch, const Array& a, const Array& b, const Array& c, const Array& bias,
           const Batches& batches) {
  Gemm whole;
  whole.m = c.shape.back(1), whole.n = c.shape.back(), whole.k = a.shape.back();
  whole.a = as_operand(a), whole.b = as_operand(b), whole.c = as_operand(c);
  whole.batch = batches.strided.extent;
  whole.a.batch_stride = batches.strided.strides[0];
  whole.b.batch_stride = batches.strided.strides[1];
  whole.c.batch_stride = batches.strided.strides[2];
  whole.bias = bias.data;
  const bool swapped = whole.c.transposed;  // then cᵀ = bᵀ · aᵀ is what lies in rows
  for_places(batches.loops, [&](const std::array<std::int64_t, 3>& loop) {
    bool first = true;
    for_places(batches.sums, [&](const std::array<std::int64_t, 3>& sum) {
      Gemm product = whole;
      move(product.a, loop[0] + sum[0]), move(product.b, loop[1] + sum[1]);
      move(product.c, loop[2]);
      product.beta = std::exchange(first, false) ? 0 : 1;
      if (swapped) {
        std::swap(product.a, product.b), std::swap(product.m, product.n);
        product.a.transposed = !product.a.transposed, product.b.transposed = !product.b.transposed;
        product.c.transposed = false;
      }
      gemm(launch, product);
    });
  });
}

// One launch costs the host some microseconds; a copy of the operands costs the device a read and
// a write. Attention's usual cases (heads beside batches) stay far below.
constexpr std::int64_t most_launches = 32;

}  // namespace

void convert(Launch& launch, const Array& from, const Array& to) {
  Call call;
  call.kind = OpKind::Cast;
  call.inputs = {from}, call.outputs = {to};
  cast_forward(call, launch);
}

void set_zero(Launch& launch, const Array& x) { fill_with(launch, x, 0); }

Array transposed(const Array& x) {
  const std::size_t rank = x.shape.rank();
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::ranges::copy(x.shape.dims(), dims.begin());
  std::swap(dims[rank - 1], dims[rank - 2]);
  Array result = x;
  result.shape = Shape(std::span<const std::int64_t>(dims).first(rank));
  std::swap(result.strides[rank - 1], result.strides[rank - 2]);
  return result;
}

bool lies_in_rows(const Array& x) {
  // Axes of one element have any stride.
  std::int64_t next = -1;
  for (std::size_t axis = x.shape.rank() - 1; axis-- > 0;) {
    if (x.shape[axis] == 1) continue;
    if (next >= 0 && x.strides[axis] != next) return false;
    next = x.strides[axis] * x.shape[axis];
  }
  return true;
}

Array as_rows(Launch& launch, const Array& x, std::size_t slot) {
  const Array lying = lies_in_rows(x) ? x : dense_copy(launch, x, x.dtype, slot);
  const std::int64_t width = x.shape.back(), rows = width == 0 ? 0 : numel(x.shape) / width;
  Array result{lying.data, lying.dtype, {rows, width}, {}};
  result.strides[0] = width, result.strides[1] = lying.strides[x.shape.rank() - 1];
  for (std::size_t axis = x.shape.rank() - 1; axis-- > 0;) {
    if (x.shape[axis] == 1) continue;
    result.strides[0] = lying.strides[axis];  // of the innermost axis of rows
    break;
  }
  return result;
}

void multiply(Launch& launch, const Array& a, const Array& b, const Array& c, const Array& bias) {
  Array left = a, right = b, result = c, shift = bias;
  // One dtype for both factors; what is neither theirs nor fp32 cannot be written by the library.
  const DType factor = a.dtype == b.dtype ? a.dtype : DType::Float32;
  const bool packs = batches_of(a, b, c).launches() > most_launches;
  if (packs || a.dtype != factor || as_operand(a).data == nullptr)
    left = dense_copy(launch, a, factor, slot_a);
  if (packs || b.dtype != factor || as_operand(b).data == nullptr)
    right = dense_copy(launch, b, factor, slot_b);

  const GemmOperand written = as_operand(c);
  const bool is_summed = !batches_of(a, b, c).sums.empty();
  const bool can_write = c.dtype == factor || c.dtype == DType::Float32;
  const bool can_shift = !bias || (bias.dtype == c.dtype && !written.transposed &&
                                   bias.strides[bias.shape.rank() - 1] == 1);
  if (packs || written.data == nullptr || !can_write || !can_shift ||
      (is_summed && c.dtype != DType::Float32)) {
    // Summed, or with a bias of another dtype: rounded once, at the end.
    const bool rounds = !can_write || !can_shift || is_summed;
    result = dense_scratch(launch, c.shape, rounds ? DType::Float32 : c.dtype, slot_c);
    if (bias) shift = dense_copy(launch, bias, result.dtype, slot_bias);
  } else if (reinterpret_cast<std::uintptr_t>(bias.data) % 16 != 0) {
    // The library asks how factors and result are aligned, but not how the bias is.
    shift = dense_copy(launch, bias, bias.dtype, slot_bias);
  }
  issue(launch, left, right, result, shift, batches_of(left, right, result));
  if (result.data != c.data) convert(launch, result, c);
}

}  // namespace tidemark::cuda
