// Elementwise kernels: out = f(inputs…), with broadcasting, in any dtypes and strides; and the
// same, summed over axes.
#pragma once

#include <algorithm>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/sums.h"
#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

/// Calls f(n, y, x…) for runs of `n` fp32 elements: y is written to `out`, x… are the inputs'.
template <typename F, typename... Inputs>
void map(const Array& out, F&& f, const Inputs&... inputs) {
  constexpr std::size_t count = sizeof...(Inputs);
  alignas(64) float scratch[count + 1][longest_run];
  for_runs(std::array<const Array*, count + 1>{&out, &inputs...},
           [&](const auto& runs, std::int64_t n) {
             float* const y = place(runs[0], scratch[0]);
             [&]<std::size_t... I>(std::index_sequence<I...>) {
               f(n, y, read(runs[I + 1], n, scratch[I + 1])...);
             }
             (std::make_index_sequence<count>());
             write(runs[0], n, y);
           });
}

inline void set_all(const Array& out, float value) {
  map(out, [&](std::int64_t n, float* y) { std::fill_n(y, n, value); });
}

/// out = in, broadcast and rounded to out's dtype.
void assign(const Array& out, const Array& in);

/// Entry `i`, or an absent array: operands at the end of a list may not be there at all.
const Array& entry(const std::vector<Array>& list, std::size_t i);

/// A vector as fp32: its own memory, or the piece `slot` of the workspace.
const float* read_vector(const Array& vector, Workspace& workspace, std::size_t slot);

/// A tensor of sums in fp32, by add_exactly().
class Sums {
 public:
  /// Takes the workspace's pieces 6 and 7.
  Sums(const Shape& shape, Workspace& workspace);

  /// Adds f(inputs…) over `shape`, summed over the axes where that is longer.
  template <typename F, typename... Inputs>
  void add(const Shape& shape, F&& f, const Inputs&... inputs) {
    constexpr std::size_t count = sizeof...(Inputs);
    static_assert(count >= 1);
    alignas(64) float scratch[count + 1][longest_run];
    const std::array<const Array*, count + 2> arrays = {&inputs..., &total_, &lost_};
    for_runs(shape, arrays, [&](const auto& runs, std::int64_t n) {
      float* const y = scratch[count];
      [&]<std::size_t... I>(std::index_sequence<I...>) { f(n, y, read(runs[I], n, scratch[I])...); }
      (std::make_index_sequence<count>());
      add_run(y, n, runs[count], runs[count + 1]);
    });
  }
  /// Adds `x` itself.
  void add(const Shape& shape, const Array& x);
  /// The sums as `out`, of the same shape.
  void write_to(const Array& out) const;

 private:
  bool adds_long_rows(const Shape& shape, const Array& x) const;
  void add_long_rows(const Array& x, std::int64_t rows);
  static void add_run(const float* x, std::int64_t n, const Run& total, const Run& lost);

  Array total_, lost_;
};

/// out = in, summed over the axes where that is longer.
void assign_sum(const Array& out, const Array& in, Workspace& workspace);

/// out = f(inputs…) over `shape`, summed over the axes where that is longer than out's.
template <typename F, typename... Inputs>
void map_and_sum(const Array& out, const Shape& shape, Workspace& workspace, F&& f,
                 const Inputs&... inputs) {
  if (numel(shape) == numel(out.shape)) return map(out, f, inputs...);
  Sums sums(out.shape, workspace);
  sums.add(shape, f, inputs...);
  sums.write_to(out);
}

}  // namespace tidemark::cpu
