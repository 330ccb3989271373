// Finds the dimensions that vary, gives the first to the columns and groups by the others.
#include "cli/reports/sweep_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/reports/print_comparison.h"

namespace tidemark::cli {
namespace {

struct Dimension {
  std::string_view name;
  std::string (*of)(const Comparison& point);
};

std::string text_or_nothing(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "";
}

// In the order of preference for columns.
constexpr std::array dimensions = {
    Dimension{"batch",
              [](const Comparison& c) { return fmt::format("{}", c.scenario.step.batch); }},
    Dimension{"sequence",
              [](const Comparison& c) { return text_or_nothing(c.scenario.step.sequence); }},
    Dimension{"image", [](const Comparison& c) { return text_or_nothing(c.scenario.step.image); }},
    Dimension{"device", [](const Comparison& c) { return c.scenario.device.name; }}};

std::vector<const Dimension*> varying(std::span<const Comparison> points) {
  std::vector<const Dimension*> found;
  for (const Dimension& dimension : dimensions)
    if (std::ranges::any_of(points, [&](const Comparison& point) {
          return dimension.of(point) != dimension.of(points.front());
        }))
      found.push_back(&dimension);
  if (found.empty()) found.push_back(&dimensions.front());
  return found;
}

std::string group_name(const Comparison& point, std::span<const Dimension* const> others) {
  std::string name;
  for (const Dimension* dimension : others) {
    if (!name.empty()) name += " · ";
    if (dimension->name != "device") name += fmt::format("{} ", dimension->name);
    name += dimension->of(point);
  }
  return name;
}

}  // namespace

std::vector<SweepGroup> group_sweep(std::span<const Comparison> points) {
  const std::vector<const Dimension*> found = varying(points);
  std::vector<SweepGroup> groups;
  for (const Comparison& point : points) {
    const std::string name = group_name(point, std::span(found).subspan(1));
    auto group = std::ranges::find(groups, name, &SweepGroup::name);
    if (group == groups.end())
      group = groups.insert(group, {name, std::string(found.front()->name), {}, {}});
    group->points.push_back(&point);
    group->columns.push_back(found.front()->of(point));
  }
  return groups;
}

std::vector<std::string> strategies_of(const SweepGroup& group) {
  std::vector<std::string> names;
  for (const Comparison* point : group.points)
    for (const Report& row : point->rows)
      if (row.applies && std::ranges::find(names, row.strategy) == names.end())
        names.push_back(row.strategy);
  return names;
}

const Report* row_of(const Comparison& point, std::string_view strategy) {
  const auto found = std::ranges::find(point.rows, strategy, &Report::strategy);
  return found == point.rows.end() || !found->applies ? nullptr : &*found;
}

std::vector<std::string> describe_sweep(std::span<const Comparison> points) {
  const std::vector<std::string> first = describe_scenario(points.front());
  std::string swept;
  for (const Dimension* dimension : varying(points)) {
    std::vector<std::string> values;
    for (const Comparison& point : points)
      if (std::ranges::find(values, dimension->of(point)) == values.end())
        values.push_back(dimension->of(point));
    swept += fmt::format("{}{} {}", swept.empty() ? "" : " × ", dimension->name,
                         fmt::join(values, ", "));
  }
  const bool one_device = std::ranges::all_of(points, [&](const Comparison& point) {
    return point.scenario.device.name == points.front().scenario.device.name;
  });
  // "batch 8 × 197 tokens · amp-fp16 · …": the first part differs from point to point.
  const std::size_t shared = first[1].find(" · ");
  std::vector<std::string> lines = {first[0], fmt::format("{} points: {}", points.size(), swept),
                                    first[1].substr(shared + 4)};
  if (one_device) lines.push_back(first[2]);
  for (const Comparison& point : points)
    for (const std::string& note : point.notes)
      if (std::ranges::find(lines, note) == lines.end()) lines.push_back(note);
  return lines;
}

}  // namespace tidemark::cli
