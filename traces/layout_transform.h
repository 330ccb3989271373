// Where the elements of a tensor lie in memory, and how the ops that only move elements (view,
// select, split, copy, concat) place them.
#pragma once

#include <optional>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

using Strides = std::array<std::int64_t, Shape::max_rank>;

/// Element (i0, i1, …) is at offset + Σ ik · strides[k] elements of the storage.
struct Layout {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;

  bool operator==(const Layout&) const = default;
};

/// Row-major, without gaps.
Layout dense(const Shape& shape);

/// True if the layout is dense(shape), up to axes of one element.
bool is_dense(const Layout& layout);

/// As dense(shape), but with the axes in the order of falling strides that `like` has: what a
/// gradient's own memory looks like, so that views of it mirror views of the value.
Layout dense_as(const Layout& like);

/// A correspondence between a source, of which all or a part is taken, and a target. The target's
/// axes are products of factors; each factor walks one axis of the source.
struct Rearrangement {
  struct Factor {
    std::int64_t size;
    std::uint8_t source_axis;
    std::int64_t step;  ///< along the source's axis
    std::uint8_t target_axis;
  };
  Shape source, target;
  std::vector<Factor> factors;                        ///< row-major order of the target
  std::array<std::int64_t, Shape::max_rank> start{};  ///< by source axis: first index
  /// Axis 1 of the source is a square grid of this side, rolled by `shift` rows and columns:
  /// target (y, x) is source ((y + shift) mod side, (x + shift) mod side). 0 = not rolled.
  std::int64_t grid_side = 0, shift = 0;
  /// The op reads its input as the target and writes its output as the source.
  bool inverted = false;
};

/// How the op's input `which` (concat) or output `which` (split) is placed; `which` is 0 for the
/// others. InputError if the op does not say, or its shapes do not fit what it says.
Rearrangement rearrangement_of(const Trace& trace, const Op& op, std::size_t which = 0);

/// The layout of the output that a view makes of its input; unset if strides cannot express it.
std::optional<Layout> through_view(const Rearrangement& view, const Layout& input);

/// The layout of the input, given the output's: where a view's gradient lies. A slice has none.
std::optional<Layout> back_through_view(const Rearrangement& view, const Layout& output);

/// By tensor: its layout within its storage. A storage is row-major unless a view of it, such as
/// merged heads, asks for another order of axes. InputError names the view that no order allows.
std::vector<Layout> value_layouts(const Trace& trace);

}  // namespace tidemark
