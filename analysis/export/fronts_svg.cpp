// Memory upwards, more time to the right, as in the picture of strategies: a line of steps for each
// class of plans, because between two points a budget buys the smaller one.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/axis.h"
#include "analysis/export/caption.h"
#include "analysis/export/picture_sizes.h"
#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"

namespace tidemark::exports {
namespace {

constexpr double least_slowdown = 5;  // per cent: rounding is not blown up

Bytes largest(const FrontsPicture& picture) {
  Bytes most;
  for (const FrontsPicture::Front& front : picture.fronts)
    for (const FrontsPicture::Point& point : front.points) most = std::max(most, point.budget);
  return most;
}

// Per cent more than vanilla; codes can make a step faster than that by a little.
double slowdown(const FrontsPicture& picture, Nanoseconds step) {
  const auto vanilla = static_cast<double>(std::max<std::int64_t>(1, picture.vanilla.count()));
  return std::max(0.0, 100 * (static_cast<double>(step.count()) / vanilla - 1));
}

double largest_slowdown(const FrontsPicture& picture) {
  double most = least_slowdown;
  for (const FrontsPicture::Front& front : picture.fronts)
    for (const FrontsPicture::Point& point : front.points)
      most = std::max(most, slowdown(picture, point.step));
  return most;
}

class Drawing {
 public:
  Drawing(const FrontsPicture& picture, double width)
      : picture_(picture),
        sizes_(size_axis(largest(picture), 6)),
        slowdowns_(count_axis(largest_slowdown(picture), width < 600 ? 4 : 7)),
        width_(width),
        caption_(picture.title, shown(), width - 2 * margin),
        legend_(entries(), width - 2 * margin),
        svg_(width, bottom() + 56 + legend_.height() + margin, picture.title) {}

  std::string draw() && {
    caption_.draw(svg_, margin);
    legend_.draw(svg_, margin, bottom() + 50);
    draw_grid();
    if (limit_is_shown())
      svg_.line(axis_width, y_at(picture_.limit), width_ - right, y_at(picture_.limit), "limit");
    for (std::size_t f = 0; f < picture_.fronts.size(); ++f)
      draw_front(picture_.fronts[f], line_colors[f % line_colors.size()]);
    return std::move(svg_).finish();
  }

 private:
  static constexpr double right = 24, plot_height = 340, inset = 12;

  std::string shown() const {
    return fmt::format(
        "predicted; upwards: the budget, {} memory [{}]; to the right: more time than the step "
        "that keeps everything, {}",
        picture_.memory, sizes_.unit, to_text(picture_.vanilla));
  }

  std::vector<LegendEntry> entries() const {
    std::vector<LegendEntry> entries;
    for (std::size_t f = 0; f < picture_.fronts.size(); ++f)
      entries.push_back(
          {Mark::Point, line_colors[f % line_colors.size()], picture_.fronts[f].name});
    if (picture_.limit.count > 0)
      entries.push_back({Mark::Limit,
                         {},
                         fmt::format("budget {}{}", to_text(picture_.limit),
                                     limit_is_shown() ? "" : ", beyond the axis")});
    return entries;
  }

  bool limit_is_shown() const {
    return picture_.limit.count > 0 && static_cast<double>(picture_.limit.count) <= sizes_.end;
  }
  double top() const { return caption_.height() + 4; }
  double bottom() const { return top() + plot_height; }
  double x_at(double percent) const {
    return axis_width + inset +
           (width_ - axis_width - right - 2 * inset) * slowdowns_.place(percent);
  }
  double x_of(const FrontsPicture::Point& point) const {
    return x_at(slowdown(picture_, point.step));
  }
  double y_at(Bytes bytes) const { return y_at(static_cast<double>(bytes.count)); }
  double y_at(double bytes) const { return top() + plot_height * (1 - sizes_.place(bytes)); }

  void draw_grid() {
    for (const Axis::Tick& tick : sizes_.ticks) {
      svg_.line(axis_width, y_at(tick.value), width_ - right, y_at(tick.value), "grid");
      svg_.text(axis_width - 6, y_at(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    for (const Axis::Tick& tick : slowdowns_.ticks) {
      const double x = x_at(tick.value);
      svg_.line(x, top(), x, bottom(), "grid");
      svg_.text(x, bottom() + 16, fmt::format("+{} %", tick.text), {.anchor = Anchor::Middle});
    }
  }

  void draw_front(const FrontsPicture::Front& front, Color color) {
    std::string path;
    for (const FrontsPicture::Point& point : front.points) {
      const double x = x_of(point), y = y_at(point.budget);
      path += path.empty() ? fmt::format("M{} {}", svg_number(x), svg_number(y))
                           : fmt::format("V{}H{}", svg_number(y), svg_number(x));
    }
    if (front.points.size() > 1) svg_.stroke(path, color, "front");
    for (const FrontsPicture::Point& point : front.points)
      svg_.circle(x_of(point), y_at(point.budget), 4, color, point.tip);
  }

  const FrontsPicture& picture_;
  Axis sizes_, slowdowns_;
  double width_;
  Caption caption_;
  Legend legend_;
  Svg svg_;
};

}  // namespace

std::string fronts_svg(const FrontsPicture& picture, double width) {
  return Drawing(picture, width).draw();
}

}  // namespace tidemark::exports
