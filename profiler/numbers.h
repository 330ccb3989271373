// Values of tensors on the host: numbers in, bytes of a dtype out, and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "traces/tensor.h"

namespace tidemark::profiler {

/// Rounded to nearest even where the dtype has fewer bits; whole numbers for integer dtypes.
std::vector<std::byte> bytes_of(std::span<const double> numbers, DType dtype);

/// Exact for fp32 and less.
std::vector<double> numbers_of(std::span<const std::byte> bytes, DType dtype);

}  // namespace tidemark::profiler
