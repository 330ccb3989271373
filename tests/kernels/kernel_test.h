// What tests of kernels share: arrays of any dtype and strides whose surroundings are guarded,
// conversion from and to doubles, calls, and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "kernels/call.h"
#include "kernels/cpu/workspace.h"
#include "kernels/number_formats.h"

namespace tidemark {

using Values = std::vector<double>;

/// How an array lies in memory.
enum class Lie : std::uint8_t {
  Dense,     ///< row-major
  Padded,    ///< row-major, with gaps between the rows and an odd start
  Swapped,   ///< the first two axes are exchanged, as in merged heads
  Reversed,  ///< the first axis is innermost: the last one is strided
};
inline constexpr std::array lies = {Lie::Dense, Lie::Padded, Lie::Swapped, Lie::Reversed};
inline constexpr std::array data_dtypes = {DType::Float32, DType::BFloat16, DType::Float16};

/// Largest relative error of rounding to the dtype.
inline double epsilon_of(DType dtype) {
  return dtype == DType::BFloat16 ? 0x1p-8 : dtype == DType::Float16 ? 0x1p-11 : 0x1p-24;
}

inline double load(const std::byte* at, DType dtype) {
  const auto as = [&]<typename T>(T value) { return std::memcpy(&value, at, sizeof value), value; };
  switch (dtype) {
    case DType::Float32:
      return static_cast<double>(as(float{}));
    case DType::BFloat16:
      return static_cast<double>(to_float(as(BFloat16{})));
    case DType::Float16:
      return static_cast<double>(to_float(as(Float16{})));
    case DType::Float64:
      return as(double{});
    case DType::Int64:
      return static_cast<double>(as(std::int64_t{}));
    default:
      return static_cast<double>(as(std::uint8_t{}));
  }
}

inline void store(std::byte* at, DType dtype, double x) {
  const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
  const float single = static_cast<float>(x);
  switch (dtype) {
    case DType::Float32:
      return put(single);
    case DType::BFloat16:
      return put(to_bfloat16(single));
    case DType::Float16:
      return put(to_float16(single));
    case DType::Float64:
      return put(x);
    case DType::Int64:
      return put(static_cast<std::int64_t>(x));
    default:
      return put(static_cast<std::uint8_t>(x));
  }
}

/// The offset of each element, in row-major order.
inline std::vector<std::int64_t> element_offsets(const Layout& layout) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(numel(layout.shape)));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), offset = layout.offset;
    for (std::size_t axis = layout.shape.rank(); axis-- > 0; rest /= layout.shape[axis])
      offset += rest % layout.shape[axis] * layout.strides[axis];
    offsets[i] = offset;
  }
  return offsets;
}

inline Layout lie_down(const Shape& shape, Lie lie) {
  const std::size_t rank = shape.rank();
  std::vector<std::size_t> order(rank);  // outermost first
  for (std::size_t i = 0; i < rank; ++i) order[i] = lie == Lie::Reversed ? rank - 1 - i : i;
  if (lie == Lie::Swapped && rank >= 3) std::swap(order[0], order[1]);
  Layout layout{.shape = shape, .offset = lie == Lie::Padded ? 3 : 0};
  std::int64_t stride = 1;
  for (std::size_t k = rank; k-- > 0;) {
    layout.strides[order[k]] = stride;
    stride *= shape[order[k]];
    if (lie == Lie::Padded && k + 1 == rank) stride += 5;
  }
  return layout;
}

/// Owns the memory of an array. What no element covers is filled with a pattern.
class TestArray {
 public:
  /// Covered memory is garbage (NaN), so that what a kernel forgets to write shows.
  explicit TestArray(const Shape& shape, DType dtype = DType::Float32, Lie lie = Lie::Dense)
      : TestArray(lie_down(shape, lie), dtype) {}
  TestArray(const Layout& layout, DType dtype) : layout_(layout), dtype_(dtype) {
    std::int64_t last = layout.offset;
    for (const std::int64_t offset : element_offsets(layout)) last = std::max(last, offset);
    bytes_.assign(static_cast<std::size_t>((last + 1) * size_of(dtype)) + tail, guard);
    for (const std::int64_t offset : element_offsets(layout))
      std::memset(at(offset), 0xff, static_cast<std::size_t>(size_of(dtype)));
  }
  TestArray(const Shape& shape, const Values& values, DType dtype = DType::Float32,
            Lie lie = Lie::Dense)
      : TestArray(shape, dtype, lie) {
    set(values);
  }

  void set(const Values& values) {
    const auto offsets = element_offsets(layout_);
    ASSERT_EQ(offsets.size(), values.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) store(at(offsets[i]), dtype_, values[i]);
  }
  /// In row-major order: what the dtype made of the numbers.
  Values values() const {
    Values result;
    for (const std::int64_t offset : element_offsets(layout_))
      result.push_back(load(const_cast<TestArray*>(this)->at(offset), dtype_));
    return result;
  }
  Array array() { return array_at(bytes_.data(), dtype_, layout_); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  /// True if nothing between and behind the elements was written.
  bool is_intact() const {
    std::vector<bool> covered(bytes_.size());
    const auto size = static_cast<std::size_t>(size_of(dtype_));
    for (const std::int64_t offset : element_offsets(layout_))
      for (std::size_t k = 0; k < size; ++k)
        covered[static_cast<std::size_t>(offset) * size + k] = true;
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (!covered[i] && bytes_[i] != guard) return false;
    return true;
  }

 private:
  static constexpr std::byte guard{0xa5};
  static constexpr std::size_t tail = 64;  // more than one vector behind the end
  std::byte* at(std::int64_t offset) { return bytes_.data() + offset * size_of(dtype_); }

  Layout layout_;
  DType dtype_;
  std::vector<std::byte> bytes_;
};

/// Shape and dtype of an operand that was not saved, or of a gradient that is not wanted.
inline Array absent(const Shape& shape = {}, DType dtype = DType::Float32) {
  return array_at(nullptr, dtype, dense(shape));
}

/// Normal numbers that the dtype can represent exactly.
inline Values random_values(const Shape& shape, unsigned seed, double scale = 1,
                            DType dtype = DType::Float32) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  Values values(static_cast<std::size_t>(numel(shape)));
  std::byte cell[8];
  for (double& x : values) store(cell, dtype, normal(random)), x = load(cell, dtype);
  return values;
}

inline Call forward(OpKind kind, std::vector<Array> inputs, std::vector<Array> outputs,
                    const Settings& settings = {}) {
  Call call;
  call.kind = kind, call.settings = settings;
  call.inputs = std::move(inputs), call.outputs = std::move(outputs);
  return call;
}

inline Call backward(OpKind kind, std::vector<Array> inputs, std::vector<Array> outputs,
                     std::vector<Array> d_outputs, std::vector<Array> d_inputs,
                     const Settings& settings = {}) {
  Call call = forward(kind, std::move(inputs), std::move(outputs), settings);
  call.pass = Pass::Backward;
  call.d_outputs = std::move(d_outputs), call.d_inputs = std::move(d_inputs);
  return call;
}

/// Largest difference, relative to the larger of the value itself and `floor`. NaN and infinity
/// must stand at the same places; a mismatch is an infinite error.
inline double max_error(const Values& got, const Values& wanted, double floor = 1) {
  if (got.size() != wanted.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(wanted[i])) continue;
    if (got[i] == wanted[i]) continue;
    const double error = std::abs(got[i] - wanted[i]) / std::max(std::abs(wanted[i]), floor);
    worst = std::max(worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
  }
  return worst;
}

/// d Σ weights·f(x) / dx by central differences, in double. `step` near the cube root of the
/// double's epsilon balances truncation and rounding.
inline Values numeric_gradient(const std::function<Values(const Values&)>& f, Values x,
                               const Values& weights, double step = 1e-5) {
  const auto weighted = [&](const Values& at) {
    const Values y = f(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  Values gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double above = weighted(x);
    x[i] = kept - step;
    gradient[i] = (above - weighted(x)) / (2 * step);
    x[i] = kept;
  }
  return gradient;
}

/// The same where f works on rows of `n` numbers, each by itself: time grows with n, not with x.
inline Values numeric_row_gradient(const std::function<Values(const Values&)>& f, const Values& x,
                                   const Values& weights, std::size_t n, double step = 1e-5) {
  Values gradient;
  for (std::size_t row = 0; row < x.size(); row += n) {
    const auto part = [&](const Values& of) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(row);
      return Values(begin, begin + static_cast<std::ptrdiff_t>(n));
    };
    const Values of_row = numeric_gradient(f, part(x), part(weights), step);
    gradient.insert(gradient.end(), of_row.begin(), of_row.end());
  }
  return gradient;
}

}  // namespace tidemark
