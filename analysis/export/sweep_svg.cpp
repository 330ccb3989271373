// Lines over the points of a sweep, one per strategy.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/export/axis.h"
#include "analysis/export/caption.h"
#include "analysis/export/picture_sizes.h"
#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"

namespace tidemark::exports {
namespace {

constexpr double least_plot_height = 300, bottom_margin = 30;

// Strategies are told apart by colour, by dashes once the colours are used up, and by their names
// at the ends of the lines, or in a legend where there is no room for these.
Color color_of_line(std::size_t i) { return line_colors[i % line_colors.size()]; }
Mark mark_of_line(std::size_t i) { return i < line_colors.size() ? Mark::Line : Mark::Dashes; }

struct Label {
  double y;
  std::size_t curve;
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

bool has_values(const SweepCurve& curve) {
  return std::ranges::any_of(curve.values, [](double value) { return value >= 0; });
}

std::vector<LegendEntry> entries_of(const SweepPicture& picture) {
  std::vector<LegendEntry> entries;
  for (std::size_t c = 0; c < picture.curves.size(); ++c)
    if (has_values(picture.curves[c]))
      entries.push_back({mark_of_line(c), color_of_line(c), picture.curves[c].name});
  return entries;
}

double name_width(const SweepPicture& picture) {
  double wide = 40;
  for (const SweepCurve& curve : picture.curves)
    wide = std::max(wide, text_width(curve.name, label_size));
  return std::min(240.0, wide);
}

std::string value_text(Quantity quantity, double value) {
  return quantity == Quantity::Size ? to_text(Bytes{static_cast<std::int64_t>(value)})
                                    : fmt::format("{:.1f}", value);
}

class Curves {
 public:
  Curves(const SweepPicture& picture, const Extent& extent, double width)
      : picture_(picture),
        axis_(picture.quantity == Quantity::Size ? shared_size_axis(extent, 6)
                                                 : shared_count_axis(extent, 6)),
        width_(width),
        has_room_for_names_(width >= page_width),
        caption_(picture.title, shown(), width - 2 * margin),
        legend_(has_room_for_names_ ? std::vector<LegendEntry>() : entries_of(picture),
                width - 2 * margin),
        svg_(width, top() + plot_height() + bottom_margin + legend_.height() + margin,
             picture.title) {}

  std::string draw() && {
    caption_.draw(svg_, margin);
    draw_axes();
    draw_limit();
    std::vector<Label> labels;
    for (std::size_t c = 0; c < picture_.curves.size(); ++c) draw_curve(c, labels);
    if (has_room_for_names_) draw_names(std::move(labels));
    legend_.draw(svg_, margin, top() + plot_height() + bottom_margin);
    return std::move(svg_).finish();
  }

 private:
  std::string shown() const {
    const bool is_beyond = picture_.limit > axis_.end;
    return fmt::format("predicted; {}{}{}{}", picture_.shown,
                       axis_.unit.empty() ? "" : fmt::format(" [{}]", axis_.unit),
                       axis_.scale == Scale::Log ? ", logarithmic" : "",
                       is_beyond
                           ? fmt::format("; the memory budget, {}, is beyond the axis",
                                         to_text(Bytes{static_cast<std::int64_t>(picture_.limit)}))
                           : "");
  }
  double top() const { return caption_.height() + 8; }
  double plot_height() const {
    return std::max(least_plot_height,
                    has_room_for_names_ ? 13 * static_cast<double>(picture_.curves.size()) : 0);
  }
  double plot_width() const {
    return width_ - axis_width - (has_room_for_names_ ? name_width(picture_) + 34 : margin);
  }
  double x_of(std::size_t i) const {
    const auto last = static_cast<double>(std::max<std::size_t>(2, picture_.points.size()) - 1);
    return axis_width + 10 + (plot_width() - 20) * static_cast<double>(i) / last;
  }
  double y_of(double value) const { return top() + plot_height() * (1 - axis_.place(value)); }

  void draw_axes() {
    for (const Axis::Tick& tick : axis_.ticks) {
      svg_.line(axis_width, y_of(tick.value), axis_width + plot_width(), y_of(tick.value), "grid");
      svg_.text(axis_width - 6, y_of(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    const double y = top() + plot_height() + 18;
    svg_.text(axis_width - 6, y, picture_.dimension, {.kind = "dim", .anchor = Anchor::End});
    const std::size_t every = names_per_tick();
    for (std::size_t i = 0; i < picture_.points.size(); i += every)
      svg_.text(x_of(i), y, picture_.points[i], {.anchor = Anchor::Middle});
  }

  // As many names of points as there is room for.
  std::size_t names_per_tick() const {
    std::size_t every = 1;
    const double between = picture_.points.size() < 2 ? plot_width() : x_of(1) - x_of(0);
    for (const std::string& point : picture_.points)
      while (text_width(point, label_size) + 12 > between * static_cast<double>(every) &&
             every < picture_.points.size())
        ++every;
    return every;
  }

  void draw_limit() {
    const double limit = picture_.limit;
    if (limit <= axis_.begin || limit > axis_.end) return;
    svg_.line(axis_width, y_of(limit), axis_width + plot_width(), y_of(limit), "limit");
    svg_.text(axis_width + 6, y_of(limit) - 4,
              "memory budget " + to_text(Bytes{static_cast<std::int64_t>(limit)}));
  }

  void draw_curve(std::size_t c, std::vector<Label>& labels) {
    const SweepCurve& curve = picture_.curves[c];
    std::string path;
    double last = -1;
    for (std::size_t i = 0; i < picture_.points.size(); ++i) {
      if (curve.values[i] < 0) continue;
      last = curve.values[i];
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(x_of(i)),
                          svg_number(y_of(last)));
    }
    if (last < 0) return;
    svg_.stroke(path, color_of_line(c), mark_of_line(c) == Mark::Line ? "front" : "front dashed");
    for (std::size_t i = 0; i < picture_.points.size(); ++i)
      if (curve.values[i] >= 0)
        svg_.circle(x_of(i), y_of(curve.values[i]), 3.5, color_of_line(c),
                    fmt::format("{}, {}: {}", curve.name, picture_.points[i],
                                value_text(picture_.quantity, curve.values[i])));
    labels.push_back({y_of(last) + 4, c});
  }

  void draw_names(std::vector<Label> labels) {
    spread(labels, top() + plot_height() + 4);
    const double x = axis_width + plot_width() + 6;
    for (const Label& label : labels) {
      draw_dash(svg_, x, label.y - 4, color_of_line(label.curve), mark_of_line(label.curve));
      svg_.text(x + 20, label.y,
                fitted(picture_.curves[label.curve].name, width_ - x - 20, label_size));
    }
  }

  const SweepPicture& picture_;
  Axis axis_;
  double width_;
  bool has_room_for_names_;
  Caption caption_;
  Legend legend_;
  Svg svg_;
};

}  // namespace

Extent extent_of(const SweepPicture& picture) {
  Extent extent;
  for (const SweepCurve& curve : picture.curves)
    for (const double value : curve.values) extent.include(value);
  return extent;
}

std::string curves_svg(const SweepPicture& picture, const Extent& extent, double width) {
  return Curves(picture, extent, width).draw();
}

}  // namespace tidemark::exports
