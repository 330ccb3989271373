// Memory over time above the streams:
//
//   GiB │        ▄▟▙▄          stacked by category, the peak marked
//       │   ▄▟████████▙▄
//       └────────────────
//   s0   ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆      runs, coloured by task
//   s1          ▆▆▆▆▆▆
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "simulator/export/axis.h"
#include "simulator/export/pictures.h"
#include "simulator/export/stacks.h"
#include "simulator/export/svg.h"

namespace tidemark {
namespace {

constexpr double width = 960, left = 70, right = 20, top = 50, memory_height = 300;
constexpr double lane_height = 22, lane_gap = 6, legend_height = 26;
constexpr double plot_width = width - left - right;
constexpr std::size_t columns = static_cast<std::size_t>(plot_width);

class MemoryPicture {
 public:
  explicit MemoryPicture(const Recording& recording)
      : recording_(recording),
        peak_(peak(recording.schedule, recording.timeline)),
        sizes_(size_axis(peak_.bytes, 6)),
        times_(time_axis(std::max(recording.timeline.duration, Nanoseconds{1}), 8)),
        svg_(width, height(), title(recording)) {}

  std::string draw() && {
    svg_.text(left, 20, title(recording_), {.kind = "title", .size = 13});
    svg_.text(left, 37,
              fmt::format("live memory by category; peak {}, step {}", to_text(peak_.bytes),
                          to_text(recording_.timeline.duration)),
              {.kind = "dim"});
    draw_grid();
    draw_stack();
    draw_peak();
    draw_streams();
    draw_legends();
    return std::move(svg_).finish();
  }

 private:
  double lanes_top() const { return top + memory_height + 24; }
  double height() const {
    return lanes_top() +
           static_cast<double>(recording_.schedule.streams) * (lane_height + lane_gap) +
           2 * legend_height;
  }
  double y_of(double bytes) const { return top + memory_height * (1 - sizes_.place(bytes)); }
  double x_of(Nanoseconds time) const {
    const auto all =
        static_cast<double>(std::max<std::int64_t>(1, recording_.timeline.duration.count()));
    return left + plot_width * static_cast<double>(time.count()) / all;
  }

  void draw_grid() {
    for (const Axis::Tick& tick : sizes_.ticks) {
      svg_.line(left, y_of(tick.value), width - right, y_of(tick.value), "grid");
      svg_.text(left - 6, y_of(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    svg_.text(left - 6, top - 8, sizes_.unit, {.kind = "dim", .anchor = Anchor::End});
    for (const Axis::Tick& tick : times_.ticks) {
      const double x = x_of(Nanoseconds{static_cast<std::int64_t>(tick.value)});
      if (x > width - right + 0.5) continue;
      svg_.line(x, top + memory_height, x, top + memory_height + 4, "axis");
      svg_.text(x, top + memory_height + 16, tick.text, {.anchor = Anchor::Middle});
    }
    svg_.text(left - 6, top + memory_height + 16, times_.unit,
              {.kind = "dim", .anchor = Anchor::End});
  }

  // From below: what is always there first.
  void draw_stack() {
    const auto curve = stacked_curve(recording_.schedule, recording_.timeline, columns);
    std::vector<double> below(columns), above(columns);
    for (std::size_t c = 0; c < category_count; ++c) {
      std::int64_t most = 0;
      for (std::size_t i = 0; i < columns; ++i) {
        above[i] = below[i] + static_cast<double>(curve[i][c].count);
        most = std::max(most, curve[i][c].count);
      }
      if (most > 0)
        svg_.area(outline(below, above), category_colors[c].color,
                  fmt::format("{}: at most {}, at the peak {}", categories[c].name,
                              to_text(Bytes{most}), to_text(peak_.by_category[c])));
      below = above;
    }
  }

  // Steps, one per column; columns of equal height become one.
  std::string outline(const std::vector<double>& below, const std::vector<double>& above) const {
    std::string path = edge(above, "M");
    for (std::size_t i = columns; i-- > 0;) {
      if (i + 1 < columns && i > 0 && below[i] == below[i + 1] && below[i] == below[i - 1])
        continue;
      path += fmt::format("L{0} {2}L{1} {2}", svg_number(left + static_cast<double>(i) + 1),
                          svg_number(left + static_cast<double>(i)), svg_number(y_of(below[i])));
    }
    return path + "Z";
  }

  std::string edge(const std::vector<double>& heights, std::string_view begin) const {
    std::string path;
    std::optional<double> last;
    for (std::size_t i = 0; i < columns; ++i) {
      if (last == heights[i] && i + 1 < columns) continue;
      const std::string x = svg_number(left + static_cast<double>(i));
      if (last) path += fmt::format("L{} {}", x, svg_number(y_of(*last)));
      path += fmt::format("{}{} {}", path.empty() ? begin : "L", x, svg_number(y_of(heights[i])));
      last = heights[i];
    }
    return path + fmt::format("L{} {}", svg_number(width - right), svg_number(y_of(*last)));
  }

  void draw_peak() {
    if (peak_.event >= recording_.timeline.memory.size()) return;
    const double x = x_of(recording_.timeline.memory[peak_.event].time);
    const double y = y_of(static_cast<double>(peak_.bytes.count));
    svg_.line(x, top, x, top + memory_height, "mark");
    const bool turns = x > width - 200;
    svg_.text(x + (turns ? -6 : 6), std::max(top + 10, y - 5), "peak " + to_text(peak_.bytes),
              {.kind = "bold", .anchor = turns ? Anchor::End : Anchor::Start});
    draw_capacity();
  }

  void draw_capacity() {
    const auto capacity = static_cast<double>(recording_.capacity.count);
    if (capacity <= 0 || capacity > sizes_.end) return;
    svg_.line(left, y_of(capacity), width - right, y_of(capacity), "limit");
    svg_.text(width - right - 4, y_of(capacity) - 4, "room " + to_text(recording_.capacity),
              {.anchor = Anchor::End});
  }

  struct Stretch {  // neighbouring runs of one colour, less than half a pixel apart
    double begin, end;
    Color color;
    std::string what;
    std::int64_t runs = 0;
    Nanoseconds busy{};
  };

  Color color_of_run(const Step& step) const {
    const Run* run = std::get_if<Run>(&step);
    return run ? color_of(run->task) : copy_color;
  }

  std::string name_of_run(const Step& step) const {
    if (std::holds_alternative<CopyOut>(step)) return "copy to the host";
    if (std::holds_alternative<CopyIn>(step)) return "copy from the host";
    const Run& run = std::get<Run>(step);
    if (run.op == no_op) return std::string(to_string(run.task));
    return fmt::format("{} of {}", to_string(run.task), (*recording_.trace)[run.op].name);
  }

  void draw_streams() {
    for (std::size_t s = 0; s < recording_.schedule.streams; ++s) {
      const double y = lanes_top() + static_cast<double>(s) * (lane_height + lane_gap);
      svg_.text(left - 6, y + lane_height / 2 + 4, fmt::format("stream {}", s),
                {.anchor = Anchor::End});
      std::optional<Stretch> open;
      for (const TimedRun& run : recording_.timeline.runs) {
        if (index(run.stream) != s || run.begin == run.end) continue;
        const Step& step = recording_.schedule.steps[run.step];
        const double begin = x_of(run.begin), end = x_of(run.end);
        const Color color = color_of_run(step);
        const bool touches = open && open->color == color && begin - open->end < 0.5;
        if (!touches || end - open->begin > 40) {
          if (touches) open->end = begin;  // no seam where only the tooltip changes
          if (open) draw_stretch(*open, y);
          open = Stretch{begin, end, color, name_of_run(step)};
        }
        open->end = end, ++open->runs, open->busy += run.end - run.begin;
      }
      if (open) draw_stretch(*open, y);
    }
  }

  void draw_stretch(const Stretch& stretch, double y) {
    const std::string more =
        stretch.runs == 1 ? "" : fmt::format(" and {} more runs", stretch.runs - 1);
    svg_.rect({stretch.begin, y, std::max(0.3, stretch.end - stretch.begin), lane_height},
              stretch.color, fmt::format("{}{}, {}", stretch.what, more, to_text(stretch.busy)));
  }

  void draw_legends() {
    const double y = height() - 2 * legend_height + 10;
    double x = left;
    const auto add = [&](Color color, std::string_view name, double at) {
      svg_.rect({x, at, 10, 10}, color, "");
      svg_.text(x + 14, at + 9, name);
      x += 22 + text_width(name, 11);
    };
    for (std::size_t c = 0; c < category_count; ++c)
      if (appears(static_cast<Category>(c))) add(category_colors[c].color, categories[c].name, y);
    x = left;
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (appears(static_cast<Task>(t))) add(task_colors[t].color, tasks[t].name, y + 20);
    const bool copies = std::ranges::any_of(recording_.timeline.runs, [&](const TimedRun& run) {
      return !std::holds_alternative<Run>(recording_.schedule.steps[run.step]);
    });
    if (copies) add(copy_color, "copy", y + 20);
  }

  bool appears(Category category) const {
    return std::ranges::find(recording_.schedule.buffers, category, &Buffer::category) !=
           recording_.schedule.buffers.end();
  }
  bool appears(Task task) const {
    return std::ranges::any_of(recording_.timeline.runs, [&](const TimedRun& timed) {
      const Run* run = std::get_if<Run>(&recording_.schedule.steps[timed.step]);
      return run && run->task == task && timed.begin != timed.end;
    });
  }

  const Recording& recording_;
  Peak peak_;
  Axis sizes_, times_;
  Svg svg_;
};

}  // namespace

std::string memory_svg(const Recording& recording) { return MemoryPicture(recording).draw(); }

}  // namespace tidemark
