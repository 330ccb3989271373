// Splits each op's shapes into common factors, which say how its elements are rearranged.
#include "traces/layout_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quoted.h"

namespace tidemark {
namespace {

using Factor = Rearrangement::Factor;

/// Finds the factors of one op; what does not fit is an InputError that names the op.
class Arranger {
 public:
  Arranger(const Trace& trace, const Op& op, std::size_t which)
      : trace_(trace), op_(op), which_(which) {
    const bool splits = op.kind == OpKind::Split;
    in_ = trace[trace.inputs(op)[op.kind == OpKind::Concat ? which : 0]].shape;
    out_ = trace[trace.outputs(op)[splits ? which : 0]].shape;
  }

  Rearrangement run() {
    if (op_.kind == OpKind::Concat) return joined();
    const bool is_smaller = numel(out_) < numel(in_);
    const auto unsaid =
        static_cast<double>(is_smaller || op_.kind == OpKind::Split ? LayoutTransform::Slice
                                                                    : LayoutTransform::Reshape);
    switch (static_cast<LayoutTransform>(
        attribute(trace_, op_, AttributeKey::LayoutTransform, unsaid))) {
      case LayoutTransform::Reshape:
        return gather([&] { all_axes(); });
      case LayoutTransform::Slice:
        return sliced();
      case LayoutTransform::SplitHeads:
        return gather([&] { heads(); });
      case LayoutTransform::MergeHeads:
        return scatter([&] { heads(); });
      case LayoutTransform::ChannelsFirst:
        return gather([&] { swapped(); });
      case LayoutTransform::ChannelsLast:
        return scatter([&] { swapped(); });
      case LayoutTransform::CutWindows:
        return gather([&] { windows(); });
      case LayoutTransform::JoinWindows:
        return scatter([&] { windows(); });
      case LayoutTransform::Roll:
        return gather([&] { rolled(); });
      case LayoutTransform::Unroll:
        return scatter([&] { rolled(); });
      case LayoutTransform::PatchMerging:
        return gather([&] { patch_merging(); });
      case LayoutTransform::ToRows:
      case LayoutTransform::ToColumns:
        return gather([&] { to_axis(); });
      case LayoutTransform::FromRows:
      case LayoutTransform::FromColumns:
        return gather([&] { from_axis(); });
    }
    fail("its layout transform is none that is known");
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw InputError(fmt::format("{} {}: {} → {}: {}", to_string(op_.kind), quoted(op_.name),
                                 to_text(in_), to_text(out_), why));
  }
  void require(bool condition, std::string_view why) const {
    if (!condition) fail(why);
  }
  // Up to 2^53, where doubles begin to skip whole numbers: far from what could overflow in sums.
  std::int64_t whole(AttributeKey key) const {
    const double value = attribute(trace_, op_, key);
    require(std::abs(value) <= 0x1p53 && value == std::floor(value),
            fmt::format("its {} is no whole number up to 2^53",
                        attribute_keys[static_cast<std::size_t>(key)].name));
    return static_cast<std::int64_t>(value);
  }
  bool is_transform(LayoutTransform layout_transform) const {
    return whole(AttributeKey::LayoutTransform) == static_cast<std::int64_t>(layout_transform);
  }

  template <typename List>
  Rearrangement gather(List list) {
    result_.source = in_, result_.target = out_;
    list();
    return finish();
  }
  // The inverse of a gather: the output is its source.
  template <typename List>
  Rearrangement scatter(List list) {
    result_.source = out_, result_.target = in_;
    result_.inverted = true;
    list();
    return finish();
  }

  void add(std::int64_t size, std::size_t axis, std::int64_t step = 1) {
    result_.factors.push_back({size, static_cast<std::uint8_t>(axis), step, 0});
  }
  std::int64_t source(std::size_t axis) const { return result_.source[axis]; }
  std::int64_t target(std::size_t axis) const { return result_.target[axis]; }

  void all_axes() {
    for (std::size_t i = 0; i < result_.source.rank(); ++i) add(source(i), i);
  }

  void heads() {
    require(result_.source.rank() == 3 && result_.target.rank() == 4,
            "heads are split from [b, t, (h d)] to [b, h, t, d]");
    const std::int64_t d = target(3);
    result_.start[2] = whole(AttributeKey::Offset);
    if (op_.kind == OpKind::Split)
      result_.start[2] += static_cast<std::int64_t>(which_) * target(1) * d;
    add(source(0), 0), add(target(1), 2, d), add(source(1), 1), add(d, 2);
  }

  void swapped() {
    const std::size_t rank = result_.source.rank();
    require(rank >= 2, "two axes are needed to be swapped");
    for (std::size_t i = 0; i + 2 < rank; ++i) add(source(i), i);
    add(source(rank - 1), rank - 1), add(source(rank - 2), rank - 2);
  }

  std::int64_t grid_side() const {
    require(result_.source.rank() == 3, "a grid is [b, (y x), c]");
    const auto side =
        static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(source(1)))));
    require(side * side == source(1), "the grid is not square");
    return side;
  }

  void windows() {
    const std::int64_t side = grid_side(), window = whole(AttributeKey::Window);
    require(window > 0 && side % window == 0, "the window does not divide the grid's side");
    const std::int64_t windows = side / window;
    add(source(0), 0), add(windows, 1, window * side), add(windows, 1, window);
    add(window, 1, side), add(window, 1), add(source(2), 2);
    roll(side);
  }

  void rolled() {
    const std::int64_t side = grid_side();
    add(source(0), 0), add(side, 1, side), add(side, 1), add(source(2), 2);
    roll(side);
  }

  void roll(std::int64_t side) {
    const std::int64_t shift = whole(AttributeKey::Shift);
    if (shift != 0) result_.grid_side = side, result_.shift = shift;
  }

  void patch_merging() {
    const std::int64_t side = grid_side(), offset = whole(AttributeKey::Offset);
    require(side % 2 == 0, "the grid's side is odd");
    result_.start[1] = offset % 2 * side + offset / 2;
    add(source(0), 0), add(side / 2, 1, 2 * side), add(side / 2, 1, 2), add(source(2), 2);
  }

  void to_axis() {
    require(result_.source.rank() == 4, "the source is [b, h, (y x), d]");
    const bool rows = is_transform(LayoutTransform::ToRows);
    const std::int64_t leading = target(0), other = source(2) / leading;
    const std::int64_t columns = rows ? other : leading;
    add(leading, 2, rows ? columns : 1);
    add(source(0), 0), add(source(1), 1);
    add(other, 2, rows ? 1 : columns);
    add(source(3), 3);
  }

  void from_axis() {
    require(result_.source.rank() == 3 && result_.target.rank() >= 5,
            "from [y, (b h x), k] to [b, h, y, x, k…]");
    const bool rows = is_transform(LayoutTransform::FromRows);
    const std::int64_t inner = rows ? target(3) : target(2);
    add(target(0), 1, target(1) * inner), add(target(1), 1, inner);
    add(target(2), rows ? 0 : 1), add(target(3), rows ? 1 : 0);
    add(source(2), 2);
  }

  // Equal ranks: the axis that differs. One axis less: the first one, but the outermost last, that
  // leaves the output's shape.
  Rearrangement sliced() {
    if (in_.rank() == out_.rank() + 1) return dropped();
    require(in_.rank() == out_.rank(), "a slice keeps its axes, or drops one");
    std::int64_t offset = whole(AttributeKey::Offset);
    for (std::size_t i = 0; i < in_.rank(); ++i)
      if (op_.kind == OpKind::Split && in_[i] != out_[i]) offset = before(i, trace_.outputs(op_));
    return gather([&] {
      for (std::size_t i = 0; i < in_.rank(); ++i) {
        add(out_[i], i);
        if (in_[i] != out_[i]) result_.start[i] = offset;
      }
    });
  }

  Rearrangement dropped() {
    const auto leaves_output = [&](std::size_t axis) {
      for (std::size_t i = 0; i < out_.rank(); ++i)
        if (in_[i < axis ? i : i + 1] != out_[i]) return false;
      return true;
    };
    std::size_t axis = 1;
    while (axis < in_.rank() && !leaves_output(axis)) ++axis;
    if (axis == in_.rank()) axis = 0;
    require(leaves_output(axis), "no axis can be dropped to leave that shape");
    return gather([&] {
      for (std::size_t i = 0; i < in_.rank(); ++i) add(i == axis ? 1 : in_[i], i);
      result_.start[axis] = whole(AttributeKey::Offset);
    });
  }

  // Extent along the axis of the pieces in front.
  std::int64_t before(std::size_t axis, std::span<const TensorId> pieces) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < which_; ++i) sum += trace_[pieces[i]].shape[axis];
    return sum;
  }

  bool joins_along(std::size_t axis) const {
    std::int64_t sum = 0;
    for (const TensorId input : trace_.inputs(op_)) {
      const Shape& piece = trace_[input].shape;
      if (piece.rank() != out_.rank()) return false;
      for (std::size_t i = 0; i < out_.rank(); ++i)
        if (i != axis && piece[i] != out_[i] && piece[i] != 1) return false;
      sum += piece[axis];
    }
    return sum == out_[axis];
  }

  // A piece is a slice of the output, of full extent along the axes where it spreads.
  Rearrangement joined() {
    std::size_t axis = 0;
    while (axis < out_.rank() && !joins_along(axis)) ++axis;
    require(axis < out_.rank(), "the pieces are not joined along one axis");
    std::array<std::int64_t, Shape::max_rank> dims{};
    for (std::size_t i = 0; i < out_.rank(); ++i) dims[i] = i == axis ? in_[i] : out_[i];
    in_ = Shape(std::span<const std::int64_t>(dims).first(out_.rank()));
    return scatter([&] {
      for (std::size_t i = 0; i < in_.rank(); ++i) add(in_[i], i);
      result_.start[axis] = before(axis, trace_.inputs(op_));
    });
  }

  // Divides the factors among the target's axes, from the innermost outwards.
  Rearrangement finish() {
    std::vector<Factor> outwards;
    std::size_t axis = result_.target.rank();
    std::int64_t left = 1;
    const auto next_axis = [&] {
      while (left == 1 && axis > 0) left = target(--axis);
    };
    for (auto f = result_.factors.rbegin(); f != result_.factors.rend(); ++f)
      while (f->size > 1) {
        next_axis();
        const std::int64_t size = std::min(f->size, left);
        require(f->size % size == 0 && left % size == 0 && size > 1,
                "the axes of one are not products of parts of the other's");
        outwards.push_back({size, f->source_axis, f->step, static_cast<std::uint8_t>(axis)});
        f->size /= size, f->step *= size, left /= size;
      }
    next_axis();
    require(left == 1, "the output has more elements than the input provides");
    result_.factors.assign(outwards.rbegin(), outwards.rend());
    check_bounds();
    return std::move(result_);
  }

  void check_bounds() const {
    auto last = result_.start;
    for (const Factor& f : result_.factors) last[f.source_axis] += (f.size - 1) * f.step;
    for (std::size_t i = 0; i < result_.source.rank(); ++i)
      require(result_.start[i] >= 0 && last[i] < source(i), "the slice ends beyond its tensor");
  }

  const Trace& trace_;
  const Op& op_;
  const std::size_t which_;
  Shape in_, out_;
  Rearrangement result_;
};

}  // namespace

Rearrangement rearrangement_of(const Trace& trace, const Op& op, std::size_t which) {
  return Arranger(trace, op, which).run();
}

}  // namespace tidemark
