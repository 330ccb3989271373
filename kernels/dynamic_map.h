// The 256 numbers that bitsandbytes codes factors and moments by: create_dynamic_map() in its
// functional.py (arXiv 2110.02861, section 2.1; 1511.04561 for the tree of exponents).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace tidemark {

/// Seven decades, each with twice as many numbers between 0.1 and 1 as the one below; with signs
/// half as many, once more negative. And 0 and 1.
inline std::array<float, 256> dynamic_map(bool is_signed) {
  constexpr int decades = 7;
  std::array<float, 256> numbers{};
  std::size_t next = 0;
  for (int decade = 0; decade < decades; ++decade) {
    const int count = 1 << (is_signed ? decade : decade + 1);
    const double unit = std::pow(10.0, decade - (decades - 1));
    for (int i = 0; i < count; ++i) {  // middles of equal steps from 0.1 to 1
      const double middle = 0.1 + 0.9 * (i + 0.5) / count;
      numbers[next++] = static_cast<float>(unit * middle);
      if (is_signed) numbers[next++] = static_cast<float>(-unit * middle);
    }
  }
  numbers[next++] = 0, numbers[next++] = 1;
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The number nearest to x; of two the lower one.
template <typename Numbers>
std::size_t nearest_code(const Numbers& numbers, float x) {
  const auto above = std::lower_bound(numbers.begin(), numbers.end(), x);
  if (above == numbers.begin()) return 0;
  const auto i = static_cast<std::size_t>(above - numbers.begin());
  if (above == numbers.end()) return i - 1;
  return x - numbers[i - 1] <= numbers[i] - x ? i - 1 : i;
}

}  // namespace tidemark
