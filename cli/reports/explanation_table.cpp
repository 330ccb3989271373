// An explanation for people: gain against vanilla, the peak by category and buffer, decisions.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/quoted.h"
#include "cli/reports/memory_picture.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_explanation.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

// Before → after against vanilla, with the price.
std::string gain_text(const Explanation& explanation) {
  const Report& row = explanation.report();
  const Report& vanilla = explanation.comparison.rows.front();
  const SizeUnit size(std::max(row.allocated_peak, vanilla.allocated_peak));
  const TimeUnit time(std::max(row.step, vanilla.step));
  if (&vanilla == &explanation.comparison.rows.back())
    return fmt::format("allocated {} · reserved {} · planned {} {} · step {} {}",
                       size(row.allocated_peak), size(row.reserved_peak), size(row.planned),
                       size.name(), time(row.step), time.name());
  return fmt::format("allocated {} → {} {} ({}) · step {} → {} {} ({}), against vanilla",
                     size(vanilla.allocated_peak), size(row.allocated_peak), size.name(),
                     change_text(row.memory_ratio.value_or(1)), time(vanilla.step), time(row.step),
                     time.name(), change_text(row.time_ratio.value_or(1)));
}

std::string peak_text(const Explanation& explanation) {
  const Report& row = explanation.report();
  const TimeUnit time(row.step);
  std::string text =
      fmt::format("The peak, {}, is at {} of {} {}, in the {} phase: {}.\n", to_text(row.live_peak),
                  time(explanation.peak_time), time(row.step), time.name(),
                  phases[static_cast<std::size_t>(explanation.peak_phase)].name, row.peak_at);
  if (row.live_peak > row.allocated_peak)
    text += fmt::format(
        "More is alive there than is ever allocated ({}): PyTorch does not count what the host has "
        "freed and a stream still uses.\n",
        to_text(row.allocated_peak));
  return text;
}

// Of a pipeline: what the schedule leaves a stage idle for.
std::string bubble_text(const Report& row) {
  if (row.bubble == Nanoseconds{}) return "";
  const TimeUnit time(row.step);
  const double share =
      static_cast<double>(row.bubble.count()) / static_cast<double>(row.step.count());
  return fmt::format("bubble: {} waits for other stages for {} of {} {}, {:.1f} % of the step\n",
                     row.rank ? to_text(*row.rank) : "the stage", time(row.bubble), time(row.step),
                     time.name(), 100 * share);
}

std::string category_table(const Explanation& explanation, const Style& style) {
  const Report& row = explanation.report();
  const SizeUnit unit(row.live_peak);
  TextTable table;
  table.add_column({"category", Align::Left});
  table.add_column({"size", Align::Right, 10, std::string(unit.name())});
  table.add_column({"", Align::Bar, 1});
  const double all = static_cast<double>(std::max<std::int64_t>(1, row.live_peak.count));
  for (std::size_t c = 0; c < category_count; ++c) {
    if (row.at_peak[c].count == 0) continue;
    table.add_row({{std::string(categories[c].name)},
                   {unit(row.at_peak[c])},
                   {"", Ink::Bar, static_cast<double>(row.at_peak[c].count) / all}});
  }
  table.add_row({{"all", Ink::Bold}, {unit(row.live_peak), Ink::Bold}, {"", Ink::Bar, 1}});
  return table.draw(style);
}

std::string name_of(const AliveBuffer& buffer) {
  if (buffer.tensor.empty()) return "(scratch)";
  if (buffer.shared.empty()) return printable(buffer.tensor);
  return fmt::format("{} from {} on", buffer.shared, printable(buffer.tensor));
}

std::string alive_table(const Explanation& explanation, const Style& style, std::size_t top) {
  const auto& alive = explanation.alive;
  const std::size_t shown = std::min(top, alive.size());
  const SizeUnit unit(alive.empty() ? Bytes{} : alive.front().size);
  TextTable table;
  table.add_column({"size", Align::Right, 10, std::string(unit.name())});
  table.add_column({"tensor", Align::Left});
  table.add_column({"category", Align::Left, 5});
  table.add_column({"role", Align::Left, 6});
  table.add_column({"block", Align::Left, 4});
  table.add_column({"decision", Align::Left});
  table.add_column({"line", Align::Left, 7});
  for (const AliveBuffer& buffer : std::span(alive).first(shown))
    table.add_row({{unit(buffer.size)},
                   {name_of(buffer)},
                   {std::string(to_string(buffer.category))},
                   {std::string(roles[static_cast<std::size_t>(buffer.role)].name)},
                   {printable(buffer.block)},
                   {buffer.decision},
                   {printable(buffer.line)}});
  std::string text = table.draw(style, "--format json has all");
  if (shown == alive.size()) return text;
  const Bytes rest =
      std::accumulate(alive.begin() + static_cast<std::ptrdiff_t>(shown), alive.end(), Bytes{},
                      [](Bytes sum, const AliveBuffer& buffer) { return sum + buffer.size; });
  return text + fmt::format("… and {} more, {} (--top N shows more)\n", alive.size() - shown,
                            to_text(rest));
}

std::string decision_table(const Explanation& explanation, const Style& style) {
  if (explanation.decisions.empty()) return "The backward needs no activation.\n";
  const SizeUnit unit(explanation.decisions.front().bytes);
  TextTable table;
  table.add_column({"decision", Align::Left});
  table.add_column({"tensors"});
  table.add_column({"size", Align::Right, 10, std::string(unit.name())});
  table.add_column({"reason", Align::Wrapped});
  for (const DecisionGroup& group : explanation.decisions)
    table.add_row({{std::string(to_string(group.action)), Ink::Bold},
                   {fmt::format("{}", group.tensors)},
                   {unit(group.bytes)},
                   {group.reason}});
  return table.draw(style);
}

}  // namespace

std::string explanation_head(const Explanation& explanation, const Style& style) {
  std::string text;
  for (const std::string& line : describe_scenario(explanation.comparison)) text += line + "\n";
  const Report& row = explanation.report();
  text += fmt::format("{}: ", style.paint(row.strategy, Ink::Bold));
  if (!row.applies) return text + "does not apply: " + row.reason + "\n";
  text += gain_text(explanation) + "\n";
  text += fmt::format("fits: {}\n", fits_text(row)) + bubble_text(row);
  return text + style.paint(origin_of_numbers(explanation.comparison), Ink::Dim) + "\n";
}

std::string explanation_table(const Explanation& explanation, const Style& style, std::size_t top) {
  std::string text = explanation_head(explanation, style);
  if (explanation.report().applies) {
    text += "\nLive memory over the step:\n" + memory_picture(explanation, style);
    text += peak_text(explanation);
    text += "\nAlive at the peak:\n" + category_table(explanation, style);
    text += fmt::format("\nThe largest of {} buffers alive there:\n", explanation.alive.size());
    text += alive_table(explanation, style, top);
    text += "\nDecisions about what the backward needs:\n" + decision_table(explanation, style);
  }
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
