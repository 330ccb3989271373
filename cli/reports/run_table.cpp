// Time by kernel, time by range, and memory where PyTorch left none of its own.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/memory_picture.h"
#include "cli/reports/print_run.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

std::string share_of_time(Nanoseconds part, Nanoseconds whole) {
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part.count()) /
                                     static_cast<double>(std::max<std::int64_t>(1, whole.count())));
}

std::string run_head(const RunFacts& facts, const Style& style) {
  const Timeline& timeline = facts.made.recorded.timeline;
  std::string command = fmt::format("{}", fmt::join(facts.run.command, " "));
  if (command.empty()) command = "an unknown program";
  std::string text = fmt::format("{}: {}\n", style.paint(printable(facts.file, 200), Ink::Bold),
                                 printable(command, 200));
  text +=
      fmt::format("{}, {}: {} kernels, {} copies and fills, ", facts.made.recorded.device,
                  to_text(timeline.duration), facts.run.kernels.size(), facts.run.transfers.size());
  text += fmt::format("a stream busy for {}, two or more for {}\n",
                      share_of_time(timeline.duration - timeline.idle, timeline.duration),
                      share_of_time(timeline.overlap, timeline.duration));
  for (const std::string& line : facts.made.lacks) text += "note: " + line + "\n";
  return text;
}

std::string work_table(const RunFacts& facts, const Style& style, std::size_t top) {
  const auto& work = facts.made.work;
  if (work.empty()) return "";
  Nanoseconds all{}, rest{};
  for (const importers::RunWork& row : work) all += row.time;
  TextTable table;
  table.add_column({"time", Align::Right});
  table.add_column({"share", Align::Right, 8});
  table.add_column({"count", Align::Right, 9});
  table.add_column({"bytes", Align::Right, 7});
  table.add_column({"kernel or copy", Align::Left});
  const std::size_t shown = std::min(top, work.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (i >= shown) {
      rest += work[i].time;
      continue;
    }
    table.add_row({{to_text(work[i].time)},
                   {share_of_time(work[i].time, all)},
                   {fmt::format("{}", work[i].count)},
                   {work[i].moved.count > 0 ? to_text(work[i].moved) : ""},
                   {printable(work[i].name, 100)}});
  }
  std::string text = "\nWhere the GPU's time went:\n" + table.draw(style, "--format json has all");
  if (shown < work.size())
    text +=
        fmt::format("… and {} more, {} (--top N shows more)\n", work.size() - shown, to_text(rest));
  return text;
}

std::string range_table(const RunFacts& facts, const Style& style, std::size_t top) {
  const auto& ranges = facts.made.ranges;
  if (ranges.empty()) return "";
  TextTable table;
  table.add_column({"GPU", Align::Right});
  table.add_column({"host", Align::Right});
  table.add_column({"count", Align::Right, 9});
  table.add_column({"range", Align::Left});
  const std::size_t shown = std::min(top, ranges.size());
  for (const importers::RunRange& range : std::span(ranges).first(shown))
    table.add_row({{to_text(range.gpu)},
                   {to_text(range.host)},
                   {fmt::format("{}", range.count)},
                   {range.name}});
  std::string text = "\nRanges that the program named, with what was launched in each itself:\n" +
                     table.draw(style, "--format json has all");
  if (shown < ranges.size())
    text += fmt::format("… and {} more (--top N shows more)\n", ranges.size() - shown);
  return text;
}

// Segments of an allocator, and what goes past it.
std::string driver_memory(const RunFacts& facts, const Style& style) {
  const importers::RecordedTimeline& recorded = facts.made.recorded;
  if (facts.made.memory) {
    if (facts.made.outside.count == 0) return "";
    return fmt::format("\nMemory that is not of PyTorch's allocator: {} at most\n",
                       to_text(facts.made.outside));
  }
  if (recorded.schedule.buffers.empty()) return "";
  std::string text = "\nMemory asked of the driver, over the recording:\n";
  text += memory_picture(recorded.schedule, recorded.timeline, style);
  return text + fmt::format(
                    "The peak is {}. What of it is in use, an allocator of the program "
                    "knows, not the driver.\n",
                    to_text(peak(recorded.schedule, recorded.timeline).bytes));
}

}  // namespace

std::string run_table(const RunFacts& facts, const Style& style, std::size_t top) {
  return run_head(facts, style) + work_table(facts, style, top) + range_table(facts, style, top) +
         driver_memory(facts, style);
}

}  // namespace tidemark::cli
