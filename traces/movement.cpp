#include "traces/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "traces/quoted.h"

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
    const auto unsaid = static_cast<double>(
        is_smaller || op_.kind == OpKind::Split ? Movement::Slice : Movement::Reshape);
    switch (static_cast<Movement>(attribute(trace_, op_, AttributeKey::Movement, unsaid))) {
      case Movement::Reshape:
        return gather([&] { all_axes(); });
      case Movement::Slice:
        return sliced();
      case Movement::SplitHeads:
        return gather([&] { heads(); });
      case Movement::MergeHeads:
        return scatter([&] { heads(); });
      case Movement::ChannelsFirst:
        return gather([&] { swapped(); });
      case Movement::ChannelsLast:
        return scatter([&] { swapped(); });
      case Movement::CutWindows:
        return gather([&] { windows(); });
      case Movement::JoinWindows:
        return scatter([&] { windows(); });
      case Movement::Roll:
        return gather([&] { rolled(); });
      case Movement::Unroll:
        return scatter([&] { rolled(); });
      case Movement::Corner:
        return gather([&] { corner(); });
      case Movement::ToRows:
      case Movement::ToColumns:
        return gather([&] { to_axis(); });
      case Movement::FromRows:
      case Movement::FromColumns:
        return gather([&] { from_axis(); });
    }
    fail("its movement is none that is known");
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw InputError(fmt::format("{} {}: {} → {}: {}", to_string(op_.kind), quoted(op_.name),
                                 to_text(in_), to_text(out_), why));
  }
  void require(bool condition, std::string_view why) const {
    if (!condition) fail(why);
  }
  std::int64_t whole(AttributeKey key) const {
    return static_cast<std::int64_t>(attribute(trace_, op_, key));
  }
  bool is_movement(Movement movement) const {
    return whole(AttributeKey::Movement) == static_cast<std::int64_t>(movement);
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

  void corner() {
    const std::int64_t side = grid_side(), offset = whole(AttributeKey::Offset);
    require(side % 2 == 0, "the grid's side is odd");
    result_.start[1] = offset % 2 * side + offset / 2;
    add(source(0), 0), add(side / 2, 1, 2 * side), add(side / 2, 1, 2), add(source(2), 2);
  }

  void to_axis() {
    require(result_.source.rank() == 4, "the source is [b, h, (y x), d]");
    const bool rows = is_movement(Movement::ToRows);
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
    const bool rows = is_movement(Movement::FromRows);
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

// Factors of one axis, outermost first, each with its stride: one stride for all of them, or none.
std::optional<std::int64_t> merged(const std::vector<std::pair<std::int64_t, std::int64_t>>& axis) {
  for (std::size_t i = 0; i + 1 < axis.size(); ++i)
    if (axis[i].second != axis[i + 1].first * axis[i + 1].second) return std::nullopt;
  return axis.empty() ? 0 : axis.back().second;
}

std::optional<Layout> target_from_source(const Rearrangement& r, const Layout& source) {
  if (r.shift != 0) return std::nullopt;
  Layout target{.shape = r.target, .offset = source.offset};
  for (std::size_t i = 0; i < r.source.rank(); ++i) target.offset += r.start[i] * source.strides[i];
  for (std::size_t axis = 0; axis < r.target.rank(); ++axis) {
    std::vector<std::pair<std::int64_t, std::int64_t>> factors;
    for (const Factor& f : r.factors)
      if (f.target_axis == axis)
        factors.emplace_back(f.size, f.step * source.strides[f.source_axis]);
    const auto stride = merged(factors);
    if (!stride) return std::nullopt;
    target.strides[axis] = *stride;
  }
  return target;
}

// Only a rearrangement of the whole source can be followed back.
std::optional<Layout> source_from_target(const Rearrangement& r, const Layout& target) {
  if (r.shift != 0 || numel(r.source) != numel(r.target)) return std::nullopt;
  struct Part {
    std::int64_t step, size, stride;
  };
  std::array<std::vector<Part>, Shape::max_rank> parts;
  std::array<std::int64_t, Shape::max_rank> inner;
  inner.fill(1);
  for (auto f = r.factors.rbegin(); f != r.factors.rend(); ++f) {
    parts[f->source_axis].push_back(
        {f->step, f->size, target.strides[f->target_axis] * inner[f->target_axis]});
    inner[f->target_axis] *= f->size;
  }
  Layout source{.shape = r.source, .offset = target.offset};
  for (std::size_t axis = 0; axis < r.source.rank(); ++axis) {
    std::ranges::sort(parts[axis], std::ranges::greater{}, &Part::step);
    std::vector<std::pair<std::int64_t, std::int64_t>> factors;
    for (const Part& part : parts[axis]) factors.emplace_back(part.size, part.stride);
    const auto stride = merged(factors);
    if (!stride) return std::nullopt;
    source.strides[axis] = *stride;
  }
  return source;
}

// Gives the input that order of axes in which the view is possible and row-major.
bool reorder(const Rearrangement& view, Layout& input) {
  const std::optional<Layout> wanted =
      back_through_view(view, dense(view.inverted ? view.source : view.target));
  if (!wanted) return false;
  input = *wanted;
  return true;
}

}  // namespace

Layout dense(const Shape& shape) {
  Layout layout{.shape = shape};
  std::int64_t stride = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    layout.strides[i] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
  return layout;
}

bool is_dense(const Layout& layout) {
  const Layout wanted = dense(layout.shape);
  for (std::size_t i = 0; i < layout.shape.rank(); ++i)
    if (layout.shape[i] != 1 && layout.strides[i] != wanted.strides[i]) return false;
  return true;
}

Layout dense_as(const Layout& like) {
  std::array<std::size_t, Shape::max_rank> order{};
  const std::size_t rank = like.shape.rank();
  for (std::size_t i = 0; i < rank; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(rank),
                   [&](std::size_t a, std::size_t b) { return like.strides[a] > like.strides[b]; });
  Layout layout{.shape = like.shape};
  std::int64_t stride = 1;
  for (std::size_t k = rank; k-- > 0;) {
    const std::size_t axis = order[k];
    layout.strides[axis] = like.shape[axis] == 1 ? 0 : stride;
    stride *= like.shape[axis];
  }
  return layout;
}

Rearrangement rearrangement_of(const Trace& trace, const Op& op, std::size_t which) {
  return Arranger(trace, op, which).run();
}

std::optional<Layout> through_view(const Rearrangement& view, const Layout& input) {
  return view.inverted ? source_from_target(view, input) : target_from_source(view, input);
}

std::optional<Layout> back_through_view(const Rearrangement& view, const Layout& output) {
  return view.inverted ? target_from_source(view, output) : source_from_target(view, output);
}

std::vector<Layout> value_layouts(const Trace& trace) {
  std::vector<Layout> layouts;
  for (const Tensor& tensor : trace.tensors) layouts.push_back(dense(tensor.shape));
  std::vector<bool> is_fixed(trace.tensors.size());
  for (const Op& op : trace.ops) {
    if (!is_view(op.kind)) continue;
    const TensorId input = trace.inputs(op)[0];
    for (std::size_t j = 0; j < op.outputs; ++j) {
      const Rearrangement view = rearrangement_of(trace, op, j);
      std::optional<Layout> output = through_view(view, layouts[index(input)]);
      if (!output && !is_fixed[index(input)] && trace[input].storage == input &&
          reorder(view, layouts[index(input)]))
        output = through_view(view, layouts[index(input)]);
      if (!output)
        throw InputError(fmt::format("{} {}: no strides make {} a view of {}", to_string(op.kind),
                                     quoted(op.name), to_text(view.target), to_text(view.source)));
      layouts[index(trace.outputs(op)[j])] = *output;
    }
    is_fixed[index(input)] = true;
  }
  return layouts;
}

}  // namespace tidemark
