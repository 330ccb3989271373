// Strides of every tensor: dense, followed through views, and reordered where a view demands it.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "traces/layout_transform.h"

namespace tidemark {
namespace {

using Factor = Rearrangement::Factor;

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
