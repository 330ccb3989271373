// Lines over the points of a sweep, one per strategy.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/export/axis.h"
#include "simulator/export/pictures.h"
#include "simulator/export/svg.h"

namespace tidemark {
namespace {

constexpr double width = 960, left = 70, top = 46, plot_height = 300, bottom_margin = 44;

// Strategies are told apart by colour, by dashes once the colours are used up, and by their names
// at the ends of the lines.

struct Label {
  double y;
  std::string text;
  Color color;
};

// Pushes labels apart, from the top down and back.
void spread(std::vector<Label>& labels, double lowest) {
  constexpr double gap = 13;
  std::ranges::stable_sort(labels, {}, &Label::y);
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + gap);
  double limit = lowest;
  for (std::size_t i = labels.size(); i-- > 0; limit = labels[i].y - gap)
    labels[i].y = std::min(labels[i].y, limit);
}

}  // namespace

std::string curves_svg(std::span<const SweepCurve> curves, std::span<const std::string> points,
                       Quantity quantity, double limit, std::string_view title) {
  double most = 1, name_width = 40;
  for (const SweepCurve& curve : curves) {
    for (const double value : curve.values) most = std::max(most, value);
    name_width = std::max(name_width, text_width(curve.name, 11));
  }
  const double right = std::min(260.0, name_width + 24), plot_width = width - left - right;
  const Axis axis = quantity == Quantity::Size
                        ? size_axis(Bytes{static_cast<std::int64_t>(most)}, 6)
                        : count_axis(most, 6);
  const double lines_height = 13 * static_cast<double>(curves.size());
  const double plot = std::max(plot_height, lines_height);
  const auto x_of = [&](std::size_t i) {
    const auto last = static_cast<double>(std::max<std::size_t>(2, points.size()) - 1);
    return left + 10 + (plot_width - 20) * static_cast<double>(i) / last;
  };
  const auto y_of = [&](double value) { return top + plot * (1 - axis.place(value)); };
  Svg svg(width, top + plot + bottom_margin, title);
  svg.text(left, 20, title, {.kind = "title", .size = 13});
  svg.text(left, 37, "predicted", {.kind = "dim"});
  for (const Axis::Tick& tick : axis.ticks) {
    svg.line(left, y_of(tick.value), left + plot_width, y_of(tick.value), "grid");
    svg.text(left - 6, y_of(tick.value) + 4, tick.text, {.anchor = Anchor::End});
  }
  svg.text(left - 6, top - 10, axis.unit, {.kind = "dim", .anchor = Anchor::End});
  // As many names of points as there is room for.
  std::size_t every = 1;
  for (const std::string& point : points)
    while (text_width(point, 11) + 12 >
               (plot_width - 20) * static_cast<double>(every) /
                   static_cast<double>(std::max<std::size_t>(1, points.size() - 1)) &&
           every < points.size())
      ++every;
  for (std::size_t i = 0; i < points.size(); i += every)
    svg.text(x_of(i), top + plot + 18, points[i], {.anchor = Anchor::Middle});
  if (limit > 0 && limit <= axis.end) {
    svg.line(left, y_of(limit), left + plot_width, y_of(limit), "limit");
    svg.text(left + 6, y_of(limit) - 4, "room " + to_text(Bytes{static_cast<std::int64_t>(limit)}));
  }
  std::vector<Label> labels;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const Color color = line_colors[c % line_colors.size()];
    std::string path;
    double last = -1;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double value = curves[c].values[i];
      if (value < 0) continue;
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(x_of(i)),
                          svg_number(y_of(value)));
      last = value;
    }
    if (last < 0) continue;
    svg.stroke(path, color, c < line_colors.size() ? "front" : "front dashed");
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double value = curves[c].values[i];
      if (value < 0) continue;
      const std::string shown = quantity == Quantity::Size
                                    ? to_text(Bytes{static_cast<std::int64_t>(value)})
                                    : fmt::format("{:.1f}", value);
      svg.circle(x_of(i), y_of(value), 3.5, color,
                 fmt::format("{}, {}: {}", curves[c].name, points[i], shown));
    }
    labels.push_back({y_of(last) + 4, curves[c].name, color});
  }
  spread(labels, top + plot + 4);
  for (const Label& label : labels) {
    svg.rect({left + plot_width + 2, label.y - 8, 8, 8}, label.color, "");
    svg.text(left + plot_width + 14, label.y, fitted(label.text, right - 16, 11));
  }
  return std::move(svg).finish();
}

}  // namespace tidemark
