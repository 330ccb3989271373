// What a kernel sees of a tensor: where its elements are, and of what kind.
#pragma once

#include "kernels/groups.h"
#include "traces/layout_transform.h"

namespace tidemark {

/// Memory that belongs to somebody else. Strides count elements; 0 repeats an axis.
struct Array {
  std::byte* data = nullptr;  ///< of element (0, 0, …); nullptr = absent
  DType dtype = DType::Float32;
  Shape shape;
  Strides strides{};
  Groups groups{};  ///< in arrays that kernels decode or watch, by their contract

  explicit operator bool() const { return data != nullptr; }
  Layout layout() const { return {shape, strides, 0}; }
};

/// The array over memory that begins at `data`; the layout counts elements from there.
inline Array array_at(std::byte* data, DType dtype, const Layout& layout) {
  return {data == nullptr ? nullptr : data + layout.offset * size_of(dtype),
          dtype,
          layout.shape,
          layout.strides,
          {}};
}

template <typename T>
T* elements(const Array& array) {
  return reinterpret_cast<T*>(array.data);
}

}  // namespace tidemark
