// A sweep for people, as Markdown and as pictures: memory and rate by strategy and point.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/export/pictures.h"
#include "analysis/sweep.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "cli/reports/sweep_groups.h"
#include "cli/text/csv.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"

namespace tidemark::cli {
namespace {

Bytes largest_of(const SweepGroup& group) {
  Bytes largest;
  for (const Comparison* point : group.points)
    for (const Report& row : point->rows) largest = std::max(largest, row.allocated_peak);
  return largest;
}

// "12.31", or "85.20 !" where it does not fit.
std::string memory_text(const Report* row, const SizeUnit& unit) {
  return row ? unit(row->allocated_peak) + (row->fits ? "" : " !") : "";
}

std::string rate_text(const Report* row) { return row ? throughput_text(*row) : ""; }

// One line per strategy, one column per point.
template <typename Cell>
std::string draw_matrix(const SweepGroup& group, const Style& style, Cell cell) {
  TextTable table;
  table.add_column({"strategy", Align::Left});
  int importance = 9;  // of the last points least
  for (const std::string& column : group.columns)
    table.add_column({column, Align::Right, importance--});
  for (const std::string& strategy : strategies_of(group)) {
    std::vector<TextCell> cells = {{strategy, Ink::Bold}};
    for (const Comparison* point : group.points) cells.push_back(cell(row_of(*point, strategy)));
    table.add_row(std::move(cells));
  }
  return table.draw(style, "--format csv has all");
}

std::string heading(const SweepGroup& group) { return group.name.empty() ? "" : group.name + ": "; }

std::string draw_group(const SweepGroup& group, const Style& style) {
  const SizeUnit unit(largest_of(group));
  const auto memory = [&](const Report* row) {
    return TextCell{memory_text(row, unit), row && !row->fits ? Ink::Bad : Ink::Plain};
  };
  const auto rate = [](const Report* row) {
    return TextCell{rate_text(row), row && !row->fits ? Ink::Dim : Ink::Plain};
  };
  return fmt::format(
      "\n{}allocated [{}] by {} (! does not fit)\n{}\n{}{} by {}\n{}", heading(group), unit.name(),
      group.dimension, draw_matrix(group, style, memory), heading(group),
      throughput_title(*group.points.front()), group.dimension, draw_matrix(group, style, rate));
}

// Each reason once, with the strategies and points that it holds for left out if it holds for all.
std::string refusals(std::span<const Comparison> points) {
  std::string text;
  std::vector<std::string> told;
  for (const Comparison& point : points)
    for (const Report& row : point.rows) {
      if (row.applies || std::ranges::find(told, row.strategy) != told.end()) continue;
      told.push_back(row.strategy);
      text += fmt::format("  {}: {}\n", row.strategy, refusal_text(row.strategy, row.reason));
    }
  return text.empty() ? text : "\nDoes not apply:\n" + text;
}

std::string conclusions(std::span<const Comparison> points, const Style& style) {
  const std::vector<std::string> names = point_names(points);
  std::string text = "\n";
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::string head;
    for (const std::string& line : wrapped_lines(
             fmt::format("{}: {}", names[i], to_text(points[i].conclusion)), style.width - 2))
      text += std::exchange(head, "  ") + line + "\n";
  }
  return text;
}

template <typename Cell>
std::string markdown_matrix(const SweepGroup& group, Cell cell) {
  std::vector<std::string> titles = {"strategy"}, rules = {"---"};
  for (const std::string& column : group.columns)
    titles.push_back(fmt::format("{} {}", group.dimension, column)), rules.emplace_back("--:");
  std::string text = markdown_line(titles) + markdown_line(rules);
  for (const std::string& strategy : strategies_of(group)) {
    std::vector<std::string> cells = {strategy};
    for (const Comparison* point : group.points) cells.push_back(cell(row_of(*point, strategy)));
    text += markdown_line(cells);
  }
  return text;
}

// All strategies of the sweep in each picture, so that a colour is the same strategy in all.
template <typename Value>
exports::SweepPicture picture_of(const SweepGroup& group,
                                 const std::vector<std::string>& strategies,
                                 exports::Quantity quantity, std::string shown, Value value) {
  const Comparison& first = *group.points.front();
  exports::SweepPicture picture;
  picture.title = fmt::format("{}{}: {} by {}", first.scenario.model.name,
                              group.name.empty() ? "" : " · " + group.name, shown, group.dimension);
  picture.dimension = group.dimension;
  picture.quantity = quantity;
  picture.points = group.columns;
  picture.shown = std::move(shown);
  for (const std::string& strategy : strategies) {
    exports::SweepCurve curve{strategy, {}};
    for (const Comparison* point : group.points) {
      const Report* row = row_of(*point, strategy);
      curve.values.push_back(row ? value(*row) : -1);
    }
    picture.curves.push_back(std::move(curve));
  }
  return picture;
}

// The memory budget, if all points of a group have the same.
double limit_of(const SweepGroup& group) {
  const Bytes capacity = group.points.front()->budget.capacity;
  const bool is_one = std::ranges::all_of(
      group.points, [&](const Comparison* point) { return point->budget.capacity == capacity; });
  return is_one ? static_cast<double>(capacity.count) : 0;
}

std::vector<std::string> all_strategies(std::span<const Comparison> points) {
  SweepGroup all;
  for (const Comparison& point : points) all.points.push_back(&point);
  return strategies_of(all);
}

}  // namespace

std::string sweep_table(std::span<const Comparison> points, const Style& style) {
  std::string text;
  for (const std::string& line : describe_sweep(points)) text += line + "\n";
  text += style.paint(origin_of_numbers(points), Ink::Dim) + "\n";
  for (const SweepGroup& group : group_sweep(points)) text += draw_group(group, style);
  text += refusals(points) + conclusions(points, style) + "\n";
  for (const std::string& line : fit_summaries(points)) text += line + "\n";
  return style.unicode ? text : to_ascii(text);
}

std::string sweep_markdown(std::span<const Comparison> points) {
  std::string text;
  for (const std::string& line : describe_sweep(points)) text += line + "  \n";
  text += origin_of_numbers(points) + "\n";
  for (const SweepGroup& group : group_sweep(points)) {
    const SizeUnit unit(largest_of(group));
    text += fmt::format("\n{}allocated [{}], ! does not fit\n\n", heading(group), unit.name());
    text += markdown_matrix(group, [&](const Report* row) { return memory_text(row, unit); });
    text += fmt::format("\n{}{}\n\n", heading(group), throughput_title(*group.points.front()));
    text += markdown_matrix(group, rate_text);
  }
  const std::vector<std::string> names = point_names(points);
  text += "\n";
  for (std::size_t i = 0; i < points.size(); ++i)
    text += fmt::format("* {}: {}\n", names[i], to_text(points[i].conclusion));
  text += "\n";
  for (const std::string& line : fit_summaries(points)) text += fmt::format("* {}\n", line);
  return text;
}

std::vector<std::string> sweep_svgs(std::span<const Comparison> points, double width) {
  const std::vector<std::string> strategies = all_strategies(points);
  std::vector<exports::SweepPicture> pictures;
  for (const SweepGroup& group : group_sweep(points)) {
    const auto memory = [](const Report& row) {
      return static_cast<double>(row.allocated_peak.count);
    };
    const auto rate = [](const Report& row) { return row.throughput; };
    pictures.push_back(
        picture_of(group, strategies, exports::Quantity::Size, "allocated memory", memory));
    pictures.back().limit = limit_of(group);
    pictures.push_back(picture_of(group, strategies, exports::Quantity::Rate,
                                  throughput_title(*group.points.front()), rate));
  }
  std::array<exports::Extent, 2> extents;  // by quantity, of all pictures
  for (const exports::SweepPicture& picture : pictures)
    extents[static_cast<std::size_t>(picture.quantity)].include(exports::extent_of(picture));
  std::vector<std::string> drawn;
  for (const exports::SweepPicture& picture : pictures)
    drawn.push_back(
        exports::curves_svg(picture, extents[static_cast<std::size_t>(picture.quantity)], width));
  return drawn;
}

}  // namespace tidemark::cli
