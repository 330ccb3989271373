// Shapes: changed, counted in elements, and written as text.
#include "traces/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tidemark {

Shape::Shape(std::span<const std::int64_t> dims) {
  CHECK(dims.size() <= max_rank);
  std::ranges::copy(dims, dims_.begin());
  rank_ = static_cast<std::uint8_t>(dims.size());
}

Shape Shape::with_back(std::int64_t dim) const {
  Shape changed = *this;
  changed.dims_[rank_ - 1u] = dim;
  return changed;
}

std::int64_t numel(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (__builtin_mul_overflow(count, dim, &count) || count > largest_size / 8)
      throw InputError(fmt::format(
          "a tensor of shape {} is larger than 1 EiB; use a smaller batch, sequence or model",
          to_text(shape)));
  }
  return count;
}

std::string to_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

Bytes size(const Tensor& tensor) { return {numel(tensor.shape) * size_of(tensor.dtype)}; }

}  // namespace tidemark
