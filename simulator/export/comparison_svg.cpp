// Pictures of a comparison: memory against time with the Pareto front, and largest batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/export/axis.h"
#include "simulator/export/pictures.h"
#include "simulator/export/svg.h"

namespace tidemark {
namespace {

constexpr double width = 960, left = 70, right = 24, top = 46;
constexpr double label_size = 11;

double number(Bytes bytes) { return static_cast<double>(bytes.count); }
double number(Nanoseconds time) { return static_cast<double>(time.count()); }

bool overlaps(const Box& a, const Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

class Tradeoff {
 public:
  Tradeoff(std::span<const Report> rows, Bytes capacity, std::string_view title)
      : rows_(rows),
        capacity_(capacity),
        front_(pareto_front(rows)),
        sizes_(size_axis_from(lowest(), largest(), 6)),
        times_(time_axis_from(fastest(), slowest(), 7)),
        svg_(width, height, title) {
    svg_.text(left, 20, title, {.kind = "title", .size = 13});
  }

  std::string draw() && {
    svg_.text(left, 37,
              "allocated memory against time of the step, predicted; the line joins what nothing "
              "else beats in both",
              {.kind = "dim"});
    draw_grid();
    draw_capacity();
    draw_front();
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].applies) occupied_.push_back({x_of(i) - 6, y_of(i) - 6, 12, 12});
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].applies) draw_point(i);
    return std::move(svg_).finish();
  }

 private:
  static constexpr double height = 440, plot_height = 340, plot_width = width - left - right;

  template <typename Better>
  Nanoseconds extreme_time(Better better) const {
    Nanoseconds best{};
    bool found = false;
    for (const Report& row : rows_)
      if (row.applies && (!std::exchange(found, true) || better(row.step, best))) best = row.step;
    return best;
  }
  Nanoseconds fastest() const { return extreme_time(std::less()); }
  Nanoseconds slowest() const { return extreme_time(std::greater()); }
  Bytes largest() const {
    Bytes most{1};
    for (const Report& row : rows_) most = std::max(most, row.allocated_peak);
    return most;
  }
  // The axis begins at zero unless that would squeeze all points into its upper half.
  Bytes lowest() const {
    Bytes least = largest();
    for (const Report& row : rows_)
      if (row.applies) least = std::min(least, row.allocated_peak);
    return 2 * least.count > largest().count ? least : Bytes{};
  }
  bool on_front(std::size_t i) const { return std::ranges::find(front_, i) != front_.end(); }

  double x_of(std::size_t i) const {
    return left + plot_width * times_.place(number(rows_[i].step));
  }
  double y_at(double bytes) const { return top + plot_height * (1 - sizes_.place(bytes)); }
  double y_of(std::size_t i) const { return y_at(number(rows_[i].allocated_peak)); }

  void draw_grid() {
    for (const Axis::Tick& tick : sizes_.ticks) {
      svg_.line(left, y_at(tick.value), width - right, y_at(tick.value), "grid");
      svg_.text(left - 6, y_at(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    svg_.text(left - 6, top - 10, sizes_.unit, {.kind = "dim", .anchor = Anchor::End});
    const double bottom = top + plot_height;
    for (const Axis::Tick& tick : times_.ticks) {
      const double x = left + plot_width * times_.place(tick.value);
      svg_.line(x, top, x, bottom, "grid");
      svg_.text(x, bottom + 16, tick.text, {.anchor = Anchor::Middle});
    }
    svg_.text(width - right, bottom + 34, fmt::format("time of the step [{}] →", times_.unit),
              {.kind = "dim", .anchor = Anchor::End});
  }

  void draw_capacity() {
    const double room = number(capacity_);
    if (room <= 0 || room > sizes_.end) return;
    svg_.line(left, y_at(room), width - right, y_at(room), "limit");
    const double y = y_at(room) - 4;
    const std::string text = "room " + to_text(capacity_);
    svg_.text(width - right - 4, y, text, {.anchor = Anchor::End});
    const double wide = text_width(text, label_size);
    occupied_.push_back({width - right - 4 - wide, y - label_size, wide, label_size + 2});
  }

  // Along its steps: what one could have by mixing is not claimed.
  void draw_front() {
    std::string path;
    double last_x = 0, last_y = 0;
    for (const std::size_t i : front_) {
      const double x = x_of(i), y = y_of(i);
      if (!path.empty()) {
        occupied_.push_back({last_x, last_y - 2, x - last_x, 4});
        occupied_.push_back({x - 2, last_y, 4, y - last_y});
      }
      path += path.empty() ? fmt::format("M{} {}", svg_number(x), svg_number(y))
                           : fmt::format("H{}V{}", svg_number(x), svg_number(y));
      last_x = x, last_y = y;
    }
    if (front_.size() > 1) svg_.stroke(path, verdict::best, "front");
  }

  void draw_point(std::size_t i) {
    const Report& row = rows_[i];
    const Color color = !row.fits     ? verdict::too_large
                        : on_front(i) ? verdict::best
                                      : verdict::beaten;
    svg_.circle(
        x_of(i), y_of(i), 5, color,
        fmt::format("{}: allocated {}, step {}{}{}", row.strategy, to_text(row.allocated_peak),
                    to_text(row.step), row.fits ? "" : ", does not fit",
                    on_front(i) ? "; on the Pareto front" : ""));
    draw_label(i);
  }

  // Where it hides nothing; if there is no such place, the tooltip has to do.
  void draw_label(std::size_t i) {
    const std::string_view name = rows_[i].strategy;
    const double bold = on_front(i) ? 1.16 : 1;  // DejaVu Sans Bold is that much wider
    const double wide = text_width(name, label_size) * bold + 2, tall = label_size + 3;
    for (const double lift : {0.0, -13.0, 13.0, -26.0, 26.0, -39.0, 39.0})
      for (const double x : {x_of(i) + 9, x_of(i) - 9 - wide}) {
        const Box box{x, y_of(i) - tall / 2 + lift, wide, tall};
        const bool fits_in = box.x > left && box.x + wide < width && box.y > top - 12 &&
                             box.y + tall < top + plot_height + 4;
        const auto hides = [&](const Box& other) { return overlaps(box, other); };
        if (!fits_in || std::ranges::any_of(occupied_, hides)) continue;
        occupied_.push_back(box);
        if (std::abs(lift) > 13)
          svg_.line(x_of(i), y_of(i), x > x_of(i) ? x : x + wide, box.y + tall / 2, "axis");
        svg_.text(box.x, box.y + tall - 4, name, {.kind = on_front(i) ? "bold" : ""});
        return;
      }
  }

  std::span<const Report> rows_;
  Bytes capacity_;
  std::vector<std::size_t> front_;
  Axis sizes_, times_;
  Svg svg_;
  std::vector<Box> occupied_;
};

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const Report> rows) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].applies) order.push_back(i);
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::pair(rows[i].step, rows[i].allocated_peak); });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || rows[i].allocated_peak < rows[front.back()].allocated_peak)
      front.push_back(i);
  return front;
}

std::string tradeoff_svg(std::span<const Report> rows, Bytes capacity, std::string_view title) {
  return Tradeoff(rows, capacity, title).draw();
}

std::string batches_svg(std::span<const Report> rows, std::string_view title) {
  constexpr double row_height = 24, bar_height = 16;
  std::vector<const Report*> known;
  double most = 1, name_width = 60;
  for (const Report& row : rows) {
    if (!row.applies || !row.batches) continue;
    known.push_back(&row);
    most = std::max(most, static_cast<double>(row.batches->every));
    name_width = std::max(name_width, text_width(row.strategy, label_size));
  }
  const double begin = 20 + name_width + 8, plot_width = width - begin - 90;
  Svg svg(width, top + row_height * static_cast<double>(known.size()) + 16, title);
  svg.text(20, 20, title, {.kind = "title", .size = 13});
  svg.text(20, 37, "largest batch that fits, predicted", {.kind = "dim"});
  double y = top + 4;
  for (const Report* row : known) {
    const auto batch = static_cast<double>(row->batches->every);
    svg.text(begin - 8, y + 12, row->strategy, {.anchor = Anchor::End});
    svg.rect({begin, y, plot_width * batch / most, bar_height}, verdict::best,
             fmt::format("{}: batch {}", row->strategy, row->batches->every));
    svg.text(begin + plot_width * batch / most + 6, y + 12,
             row->batches->every == 0 ? std::string("not even 1")
                                      : fmt::format("{}", row->batches->every));
    y += row_height;
  }
  return std::move(svg).finish();
}

}  // namespace tidemark
