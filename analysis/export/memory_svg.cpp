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

#include "analysis/export/axis.h"
#include "analysis/export/caption.h"
#include "analysis/export/picture_sizes.h"
#include "analysis/export/pictures.h"
#include "analysis/export/stacks.h"
#include "analysis/export/svg.h"

namespace tidemark::exports {
namespace {

constexpr double right = 20, memory_height = 300;
constexpr double lane_height = 22, lane_gap = 6, axis_height = 26;

class MemoryPicture {
 public:
  MemoryPicture(const Recording& recording, const StepExtent& extent, double width)
      : recording_(recording),
        peak_(peak(recording.schedule, recording.timeline)),
        sizes_(size_axis(std::max(extent.memory, peak_.bytes), 6)),
        time_(std::max({extent.time, recording.timeline.duration, Nanoseconds{1}})),
        times_(time_axis(time_, width < 600 ? 4 : 8)),
        width_(width),
        columns_(static_cast<std::size_t>(width - axis_width - right)),
        caption_(title(recording), shown(), width - 2 * margin),
        category_key_(categories_here(), width - 2 * margin),
        task_key_(tasks_here(), width - 2 * margin),
        svg_(width, keys_top() + category_key_.height() + task_key_.height() + margin,
             title(recording)) {}

  std::string draw() && {
    caption_.draw(svg_, margin);
    draw_grid();
    draw_stack();
    draw_peak();
    draw_budget();
    draw_streams();
    category_key_.draw(svg_, margin, keys_top());
    task_key_.draw(svg_, margin, keys_top() + category_key_.height());
    return std::move(svg_).finish();
  }

 private:
  std::string shown() const {
    return fmt::format("live memory [{}] by category, below it what runs [{}]; peak {}, step {}",
                       sizes_.unit, times_.unit, to_text(peak_.bytes),
                       to_text(recording_.timeline.duration));
  }

  double top() const { return caption_.height() + 6; }
  double plot_width() const { return width_ - axis_width - right; }
  double lanes_top() const { return top() + memory_height + axis_height; }
  double keys_top() const {
    return lanes_top() +
           static_cast<double>(recording_.schedule.streams) * (lane_height + lane_gap);
  }
  double y_of(double bytes) const { return top() + memory_height * (1 - sizes_.place(bytes)); }
  double x_of(Nanoseconds time) const {
    return axis_width +
           plot_width() * static_cast<double>(time.count()) / static_cast<double>(time_.count());
  }
  double end_of_step() const { return x_of(recording_.timeline.duration); }

  void draw_grid() {
    for (const Axis::Tick& tick : sizes_.ticks) {
      svg_.line(axis_width, y_of(tick.value), width_ - right, y_of(tick.value), "grid");
      svg_.text(axis_width - 6, y_of(tick.value) + 4, tick.text, {.anchor = Anchor::End});
    }
    const double bottom = top() + memory_height;
    for (const Axis::Tick& tick : times_.ticks) {
      const double x = x_of(Nanoseconds{static_cast<std::int64_t>(tick.value)});
      if (x > width_ - right + 0.5) continue;
      svg_.line(x, bottom, x, bottom + 4, "axis");
      svg_.text(x, bottom + 16, tick.text, {.anchor = Anchor::Middle});
    }
  }

  // From below: what is always there first.
  void draw_stack() {
    const auto curve = stacked_curve(recording_.schedule, recording_.timeline, columns_);
    std::vector<double> below(columns_), above(columns_);
    for (std::size_t c = 0; c < category_count; ++c) {
      std::int64_t most = 0;
      for (std::size_t i = 0; i < columns_; ++i) {
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
    for (std::size_t i = columns_; i-- > 0;) {
      if (i + 1 < columns_ && i > 0 && below[i] == below[i + 1] && below[i] == below[i - 1])
        continue;
      path += fmt::format("L{0} {2}L{1} {2}", svg_number(x_of_column(i + 1)),
                          svg_number(x_of_column(i)), svg_number(y_of(below[i])));
    }
    return path + "Z";
  }

  double x_of_column(std::size_t i) const {
    return axis_width +
           (end_of_step() - axis_width) * static_cast<double>(i) / static_cast<double>(columns_);
  }

  std::string edge(const std::vector<double>& heights, std::string_view begin) const {
    std::string path;
    std::optional<double> last;
    for (std::size_t i = 0; i < columns_; ++i) {
      if (last == heights[i] && i + 1 < columns_) continue;
      const std::string x = svg_number(x_of_column(i));
      if (last) path += fmt::format("L{} {}", x, svg_number(y_of(*last)));
      path += fmt::format("{}{} {}", path.empty() ? begin : "L", x, svg_number(y_of(heights[i])));
      last = heights[i];
    }
    return path + fmt::format("L{} {}", svg_number(end_of_step()), svg_number(y_of(*last)));
  }

  void draw_peak() {
    if (peak_.event >= recording_.timeline.memory.size()) return;
    const double x = x_of(recording_.timeline.memory[peak_.event].time);
    const double y = y_of(static_cast<double>(peak_.bytes.count));
    svg_.line(x, top(), x, top() + memory_height, "mark");
    const bool turns = x > axis_width + plot_width() / 2;
    svg_.text(x + (turns ? -6 : 6), std::max(top() + 10, y - 5), "peak " + to_text(peak_.bytes),
              {.kind = "bold", .anchor = turns ? Anchor::End : Anchor::Start});
  }

  void draw_budget() {
    const auto capacity = static_cast<double>(recording_.capacity.count);
    if (capacity <= 0 || capacity > sizes_.end) return;
    svg_.line(axis_width, y_of(capacity), width_ - right, y_of(capacity), "limit");
    svg_.text(width_ - right - 4, y_of(capacity) - 4,
              "memory budget " + to_text(recording_.capacity), {.anchor = Anchor::End});
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
      svg_.text(axis_width - 6, y + lane_height / 2 + 4, fmt::format("stream {}", s),
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

  std::vector<LegendEntry> categories_here() const {
    std::vector<LegendEntry> entries = {{Mark::None, {}, "memory"}};
    for (const auto& row : category_colors)
      if (appears(row.value))
        entries.push_back({Mark::Box, row.color, std::string(to_string(row.value))});
    return entries;
  }

  std::vector<LegendEntry> tasks_here() const {
    std::vector<LegendEntry> entries = {{Mark::None, {}, "runs"}};
    for (const auto& row : task_colors)
      if (appears(row.value))
        entries.push_back({Mark::Box, row.color, std::string(to_string(row.value))});
    const bool copies = std::ranges::any_of(recording_.timeline.runs, [&](const TimedRun& run) {
      return !std::holds_alternative<Run>(recording_.schedule.steps[run.step]);
    });
    if (copies) entries.push_back({Mark::Box, copy_color, "copy"});
    return entries;
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
  Axis sizes_;
  Nanoseconds time_;
  Axis times_;
  double width_;
  std::size_t columns_;
  Caption caption_;
  Legend category_key_, task_key_;
  Svg svg_;
};

}  // namespace

StepExtent extent_of(std::span<const Recording> recordings) {
  StepExtent extent;
  for (const Recording& recording : recordings) {
    extent.memory = std::max(extent.memory, peak(recording.schedule, recording.timeline).bytes);
    extent.time = std::max(extent.time, recording.timeline.duration);
  }
  return extent;
}

std::string memory_svg(const Recording& recording, const StepExtent& extent, double width) {
  return MemoryPicture(recording, extent, width).draw();
}

std::string memory_svg(const Recording& recording) { return memory_svg(recording, {}); }

}  // namespace tidemark::exports
