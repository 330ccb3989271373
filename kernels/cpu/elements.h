// Single elements by their indices, for kernels that look something up: whole numbers and numbers.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "kernels/cpu/rows.h"

namespace tidemark::cpu {

using Index = std::array<std::int64_t, Shape::max_rank>;

/// In bytes from the array's first element; axes of one element repeat.
inline std::int64_t offset_of(const Array& array, const Index& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < array.shape.rank(); ++i)
    if (array.shape[i] != 1) offset += index[i] * array.strides[i];
  return offset * size_of(array.dtype);
}

inline std::int64_t whole_at(const Array& array, const Index& index) {
  std::int64_t value;
  std::memcpy(&value, array.data + offset_of(array, index), sizeof value);
  return value;
}
inline void set_whole(const Array& array, const Index& index, std::int64_t value) {
  std::memcpy(array.data + offset_of(array, index), &value, sizeof value);
}
inline float number_at(const Array& array, const Index& index) {
  return value_at(array.data + offset_of(array, index), array.dtype);
}
inline void set_number(const Array& array, const Index& index, float value) {
  set_value(array.data + offset_of(array, index), array.dtype, value);
}

/// The place if there are so many; InputError otherwise.
inline std::int64_t checked_place(std::int64_t place, std::int64_t end) {
  if (place >= 0 && place < end) return place;
  throw InputError(
      fmt::format("place {} is outside of what it is looked up in; need 0 to {}", place, end - 1));
}

/// Calls body(index) for each index of the shape, in row-major order.
template <typename Body>
void for_each_index(const Shape& shape, Body&& body) {
  Index index{};
  for (std::int64_t left = numel(shape); left > 0; --left) {
    body(std::as_const(index));
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace tidemark::cpu
