// What a kernel sees of a tensor: where its elements are, and of what kind.
#pragma once

#include "traces/movement.h"

namespace tidemark {

inline constexpr float code_levels = 255;  ///< steps between Mesa's 256 codes

/// Mesa's 8-bit codes (kernels/mesa/mesa.h) in place of values: element i of a storage, as it lies
/// in memory, is code·range/255 + minimum by the statistics of group i / stretch mod groups.
struct Codes {
  const float* statistics = nullptr;  ///< [groups, 2]: range, minimum; nullptr = no codes
  const std::byte* first = nullptr;   ///< the code of the storage's element 0
  std::int64_t stretch = 1, groups = 1;

  explicit operator bool() const { return statistics != nullptr; }
};

/// Memory that belongs to somebody else. Strides count elements; 0 repeats an axis.
struct Array {
  std::byte* data = nullptr;  ///< of element (0, 0, …); nullptr = absent
  DType dtype = DType::Float32;
  Shape shape;
  Strides strides{};
  Codes codes{};  ///< with dtype UInt8; kernels whose contract says so read them as values

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
