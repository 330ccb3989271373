// Draws the highest live bytes of each column in eighths of a character, the phases below.
#include "cli/reports/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tidemark::cli {
namespace {

constexpr std::size_t rows = 8;
constexpr std::size_t label_width = 10;

std::string_view block_of(std::int64_t eighths) {
  constexpr std::array<std::string_view, 9> blocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return blocks[static_cast<std::size_t>(std::clamp<std::int64_t>(eighths, 0, 8))];
}

std::size_t column_of(Nanoseconds time, Nanoseconds duration, std::size_t columns) {
  const std::int64_t parts = static_cast<std::int64_t>(columns);
  const std::int64_t all = std::max<std::int64_t>(1, duration.count());
  return static_cast<std::size_t>(std::min(time.count() * parts / all, parts - 1));
}

// "└forward────┴backward──────┴optimizer": a phase without room for its name has only its line.
std::string time_axis(const Explanation& explanation, std::size_t columns) {
  const Nanoseconds duration = explanation.evaluation.timeline.duration;
  const std::array<std::size_t, 4> begins = {
      0, column_of(explanation.backward_begin, duration, columns),
      column_of(explanation.optimizer_begin, duration, columns), columns};
  std::string axis;
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    const std::size_t width = begins[phase + 1] - begins[phase];
    if (width == 0) continue;
    const std::string_view name = phases[phase].name;
    const bool has_room = name.size() + 1 <= width;
    axis += phase == 0 ? "└" : "┴";
    if (has_room) axis += name;
    for (std::size_t i = has_room ? name.size() + 1 : 1; i < width; ++i) axis += "─";
  }
  return axis;
}

std::size_t columns_of(const Style& style) {
  return std::min<std::size_t>(72, style.width - label_width - 2);
}

std::string picture_of(const std::vector<Bytes>& curve, Bytes top, std::size_t peak_column,
                       const std::string& axis, const Style& style) {
  const double scale = static_cast<double>(std::max<std::int64_t>(1, top.count));
  std::string text;
  for (std::size_t row = rows; row-- > 0;) {
    const std::string label = row + 1 == rows ? to_text(top) : row == 0 ? "0" : "";
    text += fmt::format("{:>{}} │", label, label_width);
    std::array<std::string, 3> parts;  // before the peak, the peak, after it
    for (std::size_t c = 0; c < curve.size(); ++c) {
      const double eighths = static_cast<double>(curve[c].count) / scale * 8 * rows;
      const auto above =
          static_cast<std::int64_t>(eighths + 0.5) - static_cast<std::int64_t>(8 * row);
      parts[c < peak_column ? 0 : c == peak_column ? 1 : 2] += block_of(above);
    }
    for (const std::size_t part : {0U, 1U, 2U})
      text += style.paint(parts[part], part == 1 ? Ink::Bad : Ink::Bar);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text += fmt::format("{:>{}} {}\n", "", label_width, axis);
  return text + fmt::format("{:>{}}▲ peak\n", "", label_width + 2 + peak_column);
}

}  // namespace

std::string memory_picture(const Explanation& explanation, const Style& style) {
  const Evaluation& evaluation = explanation.evaluation;
  const std::size_t columns = columns_of(style);
  return picture_of(live_curve(evaluation.schedule, evaluation.timeline, columns),
                    evaluation.report.live_peak,
                    column_of(explanation.peak_time, evaluation.timeline.duration, columns),
                    time_axis(explanation, columns), style);
}

std::string memory_picture(const Schedule& schedule, const Timeline& timeline, const Style& style) {
  const std::size_t columns = columns_of(style);
  const Peak top = peak(schedule, timeline);
  const Nanoseconds time =
      top.event < timeline.memory.size() ? timeline.memory[top.event].time : Nanoseconds{};
  std::string axis = "└";
  for (std::size_t i = 1; i < columns; ++i) axis += "─";
  return picture_of(live_curve(schedule, timeline, columns), top.bytes,
                    column_of(time, timeline.duration, columns), axis, style);
}

}  // namespace tidemark::cli
