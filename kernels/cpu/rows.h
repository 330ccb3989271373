// How CPU kernels walk over arrays of any strides and dtypes: as runs of consecutive elements,
// which are read as fp32, computed and written back.
//
//   for_runs(std::array{&x, &y}, [&](const auto& runs, std::int64_t n) {
//     const float* in = read(runs[0], n, scratch_x);   // the array's own memory if that is fp32
//     float* out = place(runs[1], scratch_y);          // likewise
//     for (…) out[i] = f(in[i]);
//     write(runs[1], n, out);                          // nothing to do if it was its own memory
//   });
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/array.h"

namespace tidemark::cpu {

/// Elements `stride` apart, in one row of an array.
struct Run {
  std::byte* data = nullptr;  ///< nullptr = absent
  DType dtype = DType::Float32;
  std::int64_t stride = 1;
  const Groups* groups = nullptr;  ///< see Groups: codes to decode, or values to watch

  bool is_plain() const { return dtype == DType::Float32 && stride == 1; }
  explicit operator bool() const { return data != nullptr; }
  /// From element `i` on.
  Run from(std::int64_t i) const {
    return {data == nullptr ? nullptr : data + i * stride * size_of(dtype), dtype, stride, groups};
  }
};

inline const Groups* groups_of(const Array& array) {
  return array.groups ? &array.groups : nullptr;
}

/// Longest run that for_runs() hands out: fp32 scratch for a few of them stays in the first-level
/// cache (32 KiB or more on every x86-64).
inline constexpr std::int64_t longest_run = 1024;

/// Consecutive elements of any data dtype (fp32, bf16, fp16; also fp64, uint8, bool) as fp32.
void to_floats(const std::byte* from, DType dtype, std::int64_t n, float* to);
void from_floats(const float* from, std::int64_t n, std::byte* to, DType dtype);

/// Any stride; codes are decoded. The general cases of read() and write().
void gather(const Run& run, std::int64_t n, float* to);
void scatter(const float* from, std::int64_t n, const Run& run);

/// Calls body(first, size, group) for the parts of `n` elements that belong to one group each, the
/// first of which is element `element` of the storage.
template <typename Body>
void for_parts(const Groups& groups, std::int64_t element, std::int64_t n, Body&& body) {
  std::int64_t group = element / groups.stretch;
  std::int64_t size = std::min((group + 1) * groups.stretch - element, n);
  group %= groups.count;
  for (std::int64_t i = 0; i < n; i += size, size = std::min(groups.stretch, n - i)) {
    body(i, size, groups.ranges[group]);
    if (++group == groups.count) group = 0;
  }
}

/// Widens the groups' minima and maxima by values of which the first is element `element` of the
/// storage.
void note_min_max(const Groups& groups, std::int64_t element, std::int64_t n, const float* values);
/// The same, and their codes where the groups say so.
void watch(const Groups& groups, std::int64_t element, std::int64_t n, const float* values);
void watch(const Run& run, std::int64_t n, const float* values);

/// The run as fp32: its own memory if it is that already, else `scratch`, filled.
inline const float* read(const Run& run, std::int64_t n, float* scratch) {
  if (run.is_plain()) return reinterpret_cast<const float*>(run.data);
  gather(run, n, scratch);
  return scratch;
}

/// Where to compute what write() then stores.
inline float* place(const Run& run, float* scratch) {
  return run.is_plain() ? reinterpret_cast<float*>(run.data) : scratch;
}

/// `values` may be the run's own memory; an absent run takes nothing. Where the array has groups,
/// their minimum and maximum are noted, and codes written if those are wanted.
inline void write(const Run& run, std::int64_t n, const float* values) {
  if (run && reinterpret_cast<const float*>(run.data) != values) scatter(values, n, run);
  if (run.groups != nullptr) watch(run, n, values);
}

/// One element as fp32.
float value_at(const std::byte* at, DType dtype);
void set_value(std::byte* at, DType dtype, float value);

/// The common index space of several arrays: axes of one element are left out, and neighbouring
/// axes that are one in all of them are merged.
class RunSpace {
 public:
  /// Strides of an array are counted in its bytes. Axes are aligned at the end, and a missing
  /// axis, or one of a single element, is repeated. `ordered` keeps the row-major order of
  /// `shape`; otherwise the axes are sorted by the first array's strides.
  RunSpace(const Shape& shape, std::span<const Array* const> arrays, bool ordered);

  static constexpr std::size_t most_arrays = 8;
  using Offsets = std::array<std::int64_t, most_arrays>;

  std::size_t rank() const { return rank_; }
  std::int64_t extent(std::size_t axis) const { return extents_[axis]; }
  std::int64_t stride(std::size_t axis, std::size_t array) const { return strides_[axis][array]; }

  /// Calls body(byte offsets of the arrays) for each index of all axes but the last `inner`.
  template <typename Body>
  void for_outer(std::size_t inner, Body&& body) const {
    std::array<std::int64_t, Shape::max_rank> index{};
    Offsets offsets{};
    const std::size_t outer = rank_ - inner;
    for (;;) {
      body(std::as_const(offsets));
      std::size_t axis = outer;
      for (;; --axis) {
        if (axis == 0) return;
        for (std::size_t k = 0; k < arrays_; ++k) offsets[k] += strides_[axis - 1][k];
        if (++index[axis - 1] < extents_[axis - 1]) break;
        for (std::size_t k = 0; k < arrays_; ++k)
          offsets[k] -= strides_[axis - 1][k] * extents_[axis - 1];
        index[axis - 1] = 0;
      }
    }
  }

 private:
  std::array<std::int64_t, Shape::max_rank> extents_{};
  std::array<Offsets, Shape::max_rank> strides_{};
  std::size_t rank_ = 0, arrays_ = 0;
};

/// Calls body(runs, n) until every element of `shape` was in one run; the runs of all arrays are
/// `n` ≤ `limit` elements long. Absent arrays give absent runs.
template <std::size_t N, typename Body>
void for_runs(const Shape& shape, const std::array<const Array*, N>& arrays, Body&& body,
              bool ordered = false, std::int64_t limit = longest_run) {
  static_assert(N <= RunSpace::most_arrays);
  if (numel(shape) == 0) return;
  const RunSpace space(shape, arrays, ordered);
  const bool is_scalar = space.rank() == 0;
  const std::int64_t length = is_scalar ? 1 : space.extent(space.rank() - 1);
  std::array<Run, N> whole;
  for (std::size_t k = 0; k < N; ++k)
    whole[k] = {nullptr, arrays[k]->dtype,
                is_scalar ? 0 : space.stride(space.rank() - 1, k) / size_of(arrays[k]->dtype),
                groups_of(*arrays[k])};
  space.for_outer(is_scalar ? 0 : 1, [&](const RunSpace::Offsets& offsets) {
    for (std::size_t k = 0; k < N; ++k)
      whole[k].data = arrays[k]->data == nullptr ? nullptr : arrays[k]->data + offsets[k];
    for (std::int64_t i = 0; i < length; i += limit) {
      std::array<Run, N> runs = whole;
      for (std::size_t k = 0; k < N; ++k) runs[k] = whole[k].from(i);
      body(std::as_const(runs), std::min(limit, length - i));
    }
  });
}

/// Over all elements of the first array.
template <std::size_t N, typename Body>
void for_runs(const std::array<const Array*, N>& arrays, Body&& body) {
  for_runs(arrays[0]->shape, arrays, std::forward<Body>(body));
}

/// Calls body(rows, i) for the rows along the last axis of the first array's shape, in row-major
/// order, i counting from 0. Arrays with one element per row give a run of stride 0.
template <std::size_t N, typename Body>
void for_rows(const std::array<const Array*, N>& arrays, Body&& body) {
  static_assert(N <= RunSpace::most_arrays);
  const Shape& shape = arrays[0]->shape;
  if (numel(shape) == 0) return;
  const RunSpace space(shape.rank() == 0 ? shape : shape.with_back(1), arrays, true);
  std::int64_t i = 0;
  std::array<Run, N> rows;
  for (std::size_t k = 0; k < N; ++k) {
    const Shape& own = arrays[k]->shape;
    const bool repeats = own.rank() == 0 || own.back() == 1;
    rows[k] = {nullptr, arrays[k]->dtype, repeats ? 0 : arrays[k]->strides[own.rank() - 1],
               groups_of(*arrays[k])};
    if (shape.rank() != 0 && shape.back() == 1) rows[k].stride = 1;
  }
  space.for_outer(0, [&](const RunSpace::Offsets& offsets) {
    for (std::size_t k = 0; k < N; ++k)
      rows[k].data = arrays[k]->data == nullptr ? nullptr : arrays[k]->data + offsets[k];
    body(std::as_const(rows), i++);
  });
}

/// Length of the rows of for_rows().
inline std::int64_t row_length(const Shape& shape) { return shape.rank() == 0 ? 1 : shape.back(); }

}  // namespace tidemark::cpu
