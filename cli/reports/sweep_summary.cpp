// What fits, over a whole sweep.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/sweep_groups.h"

namespace tidemark::cli {
namespace {

// "to batch 96", "on h100, h200", "at batch 8, 32" with gaps between; "" for nothing.
std::string range_text(const SweepGroup& group, std::string_view strategy) {
  std::vector<std::string> fitting;
  std::size_t leading = 0, shown = 0;
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    const Report* row = row_of(*group.points[i], strategy);
    shown += row ? 1 : 0;
    if (!row || !row->fits) continue;
    if (fitting.size() == i) ++leading;
    fitting.push_back(group.columns[i]);
  }
  if (fitting.empty()) return "";
  if (group.dimension == "device")
    return fitting.size() == shown ? "on all" : fmt::format("on {}", fmt::join(fitting, ", "));
  if (fitting.size() == shown)
    return fmt::format("to {} {}, the largest asked", group.dimension, fitting.back());
  if (leading == fitting.size()) return fmt::format("to {} {}", group.dimension, fitting.back());
  return fmt::format("at {} {}", group.dimension, fmt::join(fitting, ", "));
}

std::string in_all(std::size_t groups) {
  return groups == 1 ? "" : groups == 2 ? " on both" : fmt::format(" on all {}", groups);
}

std::string summary(std::span<const SweepGroup> groups, const std::string& strategy) {
  std::vector<std::string> ranges;
  for (const SweepGroup& group : groups) ranges.push_back(range_text(group, strategy));
  const bool is_same =
      std::ranges::all_of(ranges, [&](const std::string& range) { return range == ranges[0]; });
  if (is_same && ranges[0].empty()) return strategy + " fits nowhere";
  if (is_same) return fmt::format("{} fits {}{}", strategy, ranges[0], in_all(groups.size()));
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ",
                        ranges[i].empty() ? "not at all" : ranges[i], groups[i].name);
  return fmt::format("{} fits {}", strategy, text);
}

}  // namespace

std::vector<std::string> fit_summaries(std::span<const Comparison> points) {
  const std::vector<SweepGroup> groups = group_sweep(points);
  std::vector<std::string> strategies, lines;
  for (const SweepGroup& group : groups)
    for (const std::string& name : strategies_of(group))
      if (std::ranges::find(strategies, name) == strategies.end()) strategies.push_back(name);
  for (const std::string& strategy : strategies) lines.push_back(summary(groups, strategy));
  return lines;
}

}  // namespace tidemark::cli
