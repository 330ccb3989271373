// Pictures of a comparison: memory against time with the Pareto front, and largest batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/export/axis.h"
#include "analysis/export/caption.h"
#include "analysis/export/picture_sizes.h"
#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"

namespace tidemark::exports {
namespace {

constexpr double name_step = 15;

double number(Bytes bytes) { return static_cast<double>(bytes.count); }
double number(Nanoseconds time) { return static_cast<double>(time.count()); }

bool overlaps(const Box& a, const Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

Nanoseconds fastest(std::span<const Report> rows) {
  Nanoseconds best = Nanoseconds::max();
  for (const Report& row : rows)
    if (row.applies) best = std::min(best, row.step);
  return best;
}

// Per cent more time than the fastest.
double slowdown(const Report& row, Nanoseconds fastest) {
  return 100 * (number(row.step) / std::max(1.0, number(fastest)) - 1);
}

// What a point says about its strategy.
enum class Standing : std::uint8_t { Best, Beaten, TooLarge };
struct StandingRow {
  Standing value;
  Mark mark;
  Color color;
  std::string_view meaning;
};
constexpr std::array standings = {
    StandingRow{Standing::Best, Mark::Point, verdict::best,
                "on the Pareto front: no other needs less of both"},
    StandingRow{Standing::Beaten, Mark::Point, verdict::beaten, "another needs less of both"},
    StandingRow{Standing::TooLarge, Mark::Cross, verdict::too_large, "does not fit"}};
static_assert(is_in_order(standings));

class TradeoffPicture {
 public:
  TradeoffPicture(const Tradeoff& tradeoff, const TradeoffExtent& extent, double width)
      : rows_(tradeoff.rows),
        budget_(tradeoff.budget),
        front_(pareto_front(tradeoff.rows)),
        fastest_(fastest(tradeoff.rows)),
        sizes_(shared_size_axis(extent.memory, 6)),
        slowdowns_(count_axis(std::max(least_slowdown, extent.slowdown), width < 600 ? 4 : 7)),
        width_(width),
        caption_(tradeoff.title, shown(), width - 2 * margin),
        legend_(entries(), width - 2 * margin),
        svg_(width, bottom() + 56 + legend_.height() + margin, tradeoff.title) {}

  std::string draw() && {
    caption_.draw(svg_, margin);
    legend_.draw(svg_, margin, bottom() + 50);
    draw_grid();
    draw_budget();
    draw_front();
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].applies) occupied_.push_back({x_of(i) - 6, y_of(i) - 6, 12, 12});
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].applies) draw_point(i);
    return std::move(svg_).finish();
  }

 private:
  static constexpr double right = 24, plot_height = 340, inset = 12;
  static constexpr double least_slowdown = 5;  // per cent: rounding is not blown up

  std::string shown() const {
    return fmt::format(
        "predicted; upwards: allocated memory at the peak, without what the allocator only "
        "reserves "
        "[{}]{}; to the right: more time than the fastest, which takes {}",
        sizes_.unit, sizes_.scale == Scale::Log ? ", logarithmic" : "",
        fastest_ == Nanoseconds::max() ? "no time" : to_text(fastest_));
  }

  std::vector<LegendEntry> entries() const {
    std::vector<LegendEntry> entries;
    for (const StandingRow& row : standings)
      entries.push_back({row.mark, row.color, std::string(row.meaning)});
    if (budget_.count > 0)
      entries.push_back({Mark::Limit,
                         {},
                         fmt::format("memory budget {}{}", to_text(budget_),
                                     budget_is_shown() ? "" : ", beyond the axis")});
    return entries;
  }

  bool budget_is_shown() const {
    return number(budget_) > sizes_.begin && number(budget_) <= sizes_.end;
  }
  bool on_front(std::size_t i) const { return std::ranges::find(front_, i) != front_.end(); }
  const StandingRow& standing(std::size_t i) const {
    const Standing value = !rows_[i].fits ? Standing::TooLarge
                           : on_front(i)  ? Standing::Best
                                          : Standing::Beaten;
    return standings[static_cast<std::size_t>(value)];
  }

  double top() const { return caption_.height() + 4; }
  double bottom() const { return top() + plot_height; }
  double plot_width() const { return width_ - axis_width - right; }
  double x_at(double percent) const {
    return axis_width + inset + (plot_width() - 2 * inset) * slowdowns_.place(percent);
  }
  double x_of(std::size_t i) const { return x_at(slowdown(rows_[i], fastest_)); }
  double y_at(double bytes) const { return top() + plot_height * (1 - sizes_.place(bytes)); }
  double y_of(std::size_t i) const { return y_at(number(rows_[i].allocated_peak)); }

  void draw_grid() {
    for (const Axis::Tick& tick : sizes_.ticks) {
      svg_.line(axis_width, y_at(tick.value), width_ - right, y_at(tick.value), "grid");
      svg_.text(axis_width - 6, y_at(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    for (const Axis::Tick& tick : slowdowns_.ticks) {
      const double x = x_at(tick.value);
      svg_.line(x, top(), x, bottom(), "grid");
      svg_.text(x, bottom() + 16, fmt::format("+{} %", tick.text), {.anchor = Anchor::Middle});
      if (fastest_ == Nanoseconds::max()) continue;
      const auto time = static_cast<std::int64_t>(number(fastest_) * (1 + tick.value / 100));
      svg_.text(x, bottom() + 31, to_text(Nanoseconds{time}),
                {.kind = "dim", .anchor = Anchor::Middle});
    }
  }

  void draw_budget() {
    if (!budget_is_shown()) return;
    const double y = y_at(number(budget_));
    svg_.line(axis_width, y, width_ - right, y, "limit");
    const std::string text = "memory budget " + to_text(budget_);
    svg_.text(width_ - right - 4, y - 4, text, {.anchor = Anchor::End});
    const double wide = text_width(text, label_size);
    occupied_.push_back({width_ - right - 4 - wide, y - 4 - label_size, wide, label_size + 2});
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
    const StandingRow& look = standing(i);
    const std::string tip =
        fmt::format("{}: allocated {}, step {}{}{}", row.strategy, to_text(row.allocated_peak),
                    to_text(row.step), row.fits ? "" : ", does not fit",
                    on_front(i) ? "; on the Pareto front" : "");
    if (look.mark == Mark::Cross)
      draw_cross(svg_, x_of(i), y_of(i), look.color, tip);
    else
      svg_.circle(x_of(i), y_of(i), 5, look.color, tip);
    draw_name(i);
  }

  // Beside the point, else further and further away with a line to it, where it hides nothing.
  void draw_name(std::size_t i) {
    for (int distance = 0; distance <= 20; ++distance)
      for (const double lift : {-name_step * distance, name_step * distance})
        for (const Side side : {Side::Right, Side::Left, Side::Over})
          if (draw_name_at(i, side, lift)) return;
  }

  enum class Side : std::uint8_t { Left, Right, Over };

  double x_of_name(std::size_t i, Side side, double wide, double away) const {
    switch (side) {
      case Side::Left:
        return x_of(i) - away - wide;
      case Side::Right:
        return x_of(i) + away;
      case Side::Over:
        break;
    }
    return std::clamp(x_of(i) - wide / 2, axis_width + 1,
                      std::max(axis_width + 1, width_ - 3 - wide));
  }

  bool draw_name_at(std::size_t i, Side side, double lift) {
    const double bold = on_front(i) ? 1.16 : 1;  // DejaVu Sans Bold is that much wider
    const double wide = text_width(rows_[i].strategy, label_size) * bold + 2, tall = label_size + 3;
    // Names at the height of their point leave it room; others may stand above or below it.
    const double away = std::abs(lift) > name_step ? 5 : 9;
    const double x = x_of_name(i, side, wide, away);
    const Box box{x, y_of(i) - tall / 2 + lift, wide, tall};
    const bool fits_in = box.x > axis_width && box.x + wide < width_ - 2 && box.y > top() - 4 &&
                         box.y + tall < bottom();
    const auto hides = [&](const Box& other) { return overlaps(box, other); };
    if (!fits_in || std::ranges::any_of(occupied_, hides)) return false;
    occupied_.push_back(box);
    if (std::abs(lift) > name_step)
      svg_.line(x_of(i), y_of(i), std::clamp(x_of(i), x, x + wide), lift < 0 ? box.y + tall : box.y,
                "axis");
    svg_.text(box.x, box.y + tall - 4, rows_[i].strategy, {.kind = on_front(i) ? "bold" : ""});
    return true;
  }

  std::span<const Report> rows_;
  Bytes budget_;
  std::vector<std::size_t> front_;
  Nanoseconds fastest_;
  Axis sizes_, slowdowns_;
  double width_;
  Caption caption_;
  Legend legend_;
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

void TradeoffExtent::include(std::span<const Report> rows) {
  const Nanoseconds best = fastest(rows);
  for (const Report& row : rows) {
    if (!row.applies) continue;
    memory.include(number(row.allocated_peak));
    slowdown = std::max(slowdown, exports::slowdown(row, best));
  }
}

std::string tradeoff_svg(const Tradeoff& tradeoff, const TradeoffExtent& extent, double width) {
  return TradeoffPicture(tradeoff, extent, width).draw();
}

std::string tradeoff_svg(const Tradeoff& tradeoff, double width) {
  TradeoffExtent extent;
  extent.include(tradeoff.rows);
  // One picture alone begins at zero.
  extent.memory.smallest = extent.memory.largest;
  return tradeoff_svg(tradeoff, extent, width);
}

std::string batches_svg(std::span<const Report> rows, std::string_view title, double width) {
  constexpr double row_height = 24, bar_height = 16, value_width = 74;
  std::vector<const Report*> known;
  double most = 1, name_width = 60;
  for (const Report& row : rows) {
    if (!row.applies || !row.batches) continue;
    known.push_back(&row);
    most = std::max(most, static_cast<double>(row.batches->every));
    name_width = std::max(name_width, text_width(row.strategy, label_size));
  }
  name_width = std::min(name_width, 0.5 * width);
  const Caption caption(title, "predicted; the largest batch that fits", width - 2 * margin);
  const double begin = margin + name_width + 8, plot_width = width - begin - value_width;
  const double top = caption.height();
  Svg svg(width, top + row_height * static_cast<double>(known.size()) + margin, title);
  caption.draw(svg, margin);
  double y = top;
  for (const Report* row : known) {
    const auto batch = static_cast<double>(row->batches->every);
    svg.text(begin - 8, y + 12, fitted(row->strategy, name_width, label_size),
             {.anchor = Anchor::End});
    svg.rect({begin, y, plot_width * batch / most, bar_height}, verdict::beaten,
             fmt::format("{}: batch {}", row->strategy, row->batches->every));
    svg.text(begin + plot_width * batch / most + 6, y + 12,
             row->batches->every == 0 ? std::string("not even 1")
                                      : fmt::format("{}", row->batches->every));
    y += row_height;
  }
  return std::move(svg).finish();
}

}  // namespace tidemark::exports
