// Each element is converted through the dtype's own type; 16-bit floats go through fp32.
#include "profiler/numbers.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/number_formats.h"

namespace tidemark::profiler {
namespace {

template <typename T>
T converted(double number) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
    return from_float<T>(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

template <typename T>
double converted_back(T element) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
    return static_cast<double>(to_float(element));
  else
    return static_cast<double>(element);
}

/// Calls visit with a value of the C++ type that stands for the dtype.
template <typename Visit>
auto with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::Float16:
      return visit(Float16{});
    case DType::BFloat16:
      return visit(BFloat16{});
    case DType::Float64:
      return visit(double{});
    case DType::Int64:
      return visit(std::int64_t{});
    case DType::UInt8:
    case DType::Bool:
    case DType::Float8:  // codes; no kernel takes them
    case DType::Float4x2:
      return visit(std::uint8_t{});
    case DType::Float32:
      break;
  }
  return visit(float{});
}

}  // namespace

std::vector<std::byte> bytes_of(std::span<const double> numbers, DType dtype) {
  return with_type(dtype, [&]<typename T>(T) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(T));
    constexpr std::size_t part = std::size_t{1} << 16;
    parallel_for((numbers.size() + part - 1) / part, [&](std::size_t p) {
      const std::size_t end = std::min(numbers.size(), (p + 1) * part);
      for (std::size_t i = p * part; i < end; ++i) {
        const T element = converted<T>(numbers[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
      }
    });
    return bytes;
  });
}

std::vector<double> numbers_of(std::span<const std::byte> bytes, DType dtype) {
  return with_type(dtype, [&]<typename T>(T) {
    std::vector<double> numbers(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      numbers[i] = converted_back(element);
    }
    return numbers;
  });
}

}  // namespace tidemark::profiler
