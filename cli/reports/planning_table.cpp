// A plan for people: beside vanilla, decisions by blocks, the certificate in words, the front.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/planning/plan_fronts.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_planning.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"
#include "simulator/tensor_roles.h"

namespace tidemark::cli {
namespace {

/// Of a stage, or of the whole step.
struct GroupsOf {
  std::string stage;
  const std::vector<PlanGroup>& groups;
};

std::vector<GroupsOf> groups_by_stage(const Planning& planning) {
  if (planning.stages.empty()) return {{"", planning.groups}};
  std::vector<GroupsOf> all;
  for (const StagePlan& stage : planning.stages)
    all.push_back({to_text(*stage.report.rank), stage.groups});
  return all;
}

std::string draw_groups(const Planning& planning, const Style& style) {
  const std::vector<GroupsOf> all = groups_by_stage(planning);
  Bytes largest;
  Nanoseconds longest{};
  for (const GroupsOf& of : all)
    for (const PlanGroup& group : of.groups) {
      largest = std::max(largest, group.saved);
      longest = std::max(longest, group.extra);
    }
  const SizeUnit size(largest);
  const TimeUnit time(longest);
  TextTable table;
  const bool has_stages = !planning.stages.empty();
  if (has_stages) table.add_column({"stage", Align::Left});
  table.add_column({"blocks", Align::Left});
  table.add_column({"saves", Align::Right, 10, std::string(size.name())});
  table.add_column({"costs", Align::Right, 10, std::string(time.name())});
  table.add_column({"decision", Align::Left});
  table.add_column({"tensors", Align::Wrapped});
  for (auto [stage, groups] : all)
    for (const PlanGroup& group : groups) {
      std::string name = group_name(group), saves, costs;
      if (is_changed(group)) saves = size(group.saved), costs = time(group.extra);
      for (const GroupLine& line : group_lines(planning, group)) {
        std::vector<TextCell> cells;
        if (has_stages) cells.push_back({std::exchange(stage, {})});
        cells.insert(cells.end(), {{std::exchange(name, {})},
                                   {std::exchange(saves, {})},
                                   {std::exchange(costs, {})},
                                   {line.decision},
                                   {line.tensors}});
        table.add_row(std::move(cells));
      }
    }
  return table.draw(style);
}

// What each needs, and how long it waits for the others.
std::string draw_stages(const Planning& planning, const Style& style) {
  Bytes largest;
  Nanoseconds longest{};
  for (const StagePlan& stage : planning.stages) {
    largest = std::max(largest, stage.report.allocated_peak);
    longest = std::max({longest, stage.report.recovery.alone, stage.report.bubble});
  }
  const SizeUnit size(largest);
  const TimeUnit time(longest);
  TextTable table;
  table.add_column({"stage", Align::Left});
  table.add_column({"in flight"});
  table.add_column({"allocated", Align::Right, 10, std::string(size.name())});
  table.add_column({"reserved", Align::Right, 10, std::string(size.name())});
  table.add_column({"recompute", Align::Right, 10, std::string(time.name())});
  table.add_column({"bubble", Align::Right, 10, std::string(time.name())});
  table.add_column({"tightest in", Align::Left});
  for (const StagePlan& stage : planning.stages)
    table.add_row({{to_text(*stage.report.rank)},
                   {fmt::format("{}", stage.in_flight)},
                   {size(stage.report.allocated_peak)},
                   {size(stage.report.reserved_peak)},
                   {time(stage.report.recovery.alone)},
                   {time(stage.report.bubble)},
                   {stage.binding}});
  return table.draw(style);
}

double slowdown_of(Nanoseconds step, const Report& vanilla) {
  return static_cast<double>(step.count()) /
         static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
}

Nanoseconds slowest(const std::vector<PlanFront>& fronts) {
  Nanoseconds most{};
  for (const PlanFront& front : fronts)
    for (const FrontPoint& point : front.points) most = std::max(most, point.report.step);
  return most;
}

std::string fronts_title(const Planning& planning) {
  const PlanFront& own = planning.fronts.back();
  if (planning.fronts.size() == 1)
    return fmt::format("The front, {} of its {} points", own.points.size(), own.size);
  return "What budgets cost with what plans may do (some points of each front)";
}

// A column of times for each class of plans, in the same bytes.
std::string draw_fronts(const Planning& planning, const Style& style) {
  const Report& vanilla = planning.comparison.rows.front();
  const std::vector<FrontRow> rows = rows_of(planning.fronts, planning.request.front_points);
  const bool is_one = planning.fronts.size() == 1;
  const SizeUnit size(rows.back().budget);
  const TimeUnit time(slowest(planning.fronts));
  TextTable table;
  const std::string measure(to_string(planning.request.measure));
  table.add_column({measure, Align::Right, 10, std::string(size.name())});
  table.add_column({"", Align::Bar, 6});
  table.add_column({"change"});
  for (const PlanFront& front : planning.fronts) {
    table.add_column(
        {is_one ? "step" : class_name(front.allowed), Align::Right, 10, std::string(time.name())});
    table.add_column({"change"});
  }
  const auto whole = static_cast<double>(measured(vanilla, planning.request.measure).count);
  for (const FrontRow& row : rows) {
    const double share = static_cast<double>(row.budget.count) / whole;
    std::vector<TextCell> cells = {
        {size(row.budget)}, {"", Ink::Bar, std::min(share, 1.0)}, {change_text(share)}};
    for (const FrontPoint* point : row.points) {
      cells.push_back({point ? time(point->report.step) : "none"});
      cells.push_back({point ? change_text(slowdown_of(point->report.step, vanilla)) : ""});
    }
    table.add_row(std::move(cells));
  }
  return fmt::format("\n{}:\n{}", fronts_title(planning), table.draw(style));
}

bool has_points(const std::vector<PlanFront>& fronts) {
  return std::ranges::any_of(fronts, [](const PlanFront& front) { return !front.points.empty(); });
}

std::string draw_forms(const Planning& planning, const Style& style) {
  const Report& vanilla = planning.comparison.rows.front();
  const SizeUnit size(vanilla.allocated_peak);
  const TimeUnit time(vanilla.step);
  TextTable table;
  table.add_column({"form", Align::Left});
  table.add_column({"allocated", Align::Right, 10, std::string(size.name())});
  table.add_column({"step", Align::Right, 10, std::string(time.name())});
  table.add_column({"change"});
  table.add_column({"what to write", Align::Wrapped});
  for (const EmittedForm& form : planning.forms) {
    if (form.paste.empty()) {
      table.add_row({{form.name}, {}, {}, {}, {"nothing of this form keeps to it"}});
      continue;
    }
    table.add_row({{form.name},
                   {size(form.allocated)},
                   {time(form.step)},
                   {change_text(slowdown_of(form.step, vanilla))},
                   {form.paste}});
  }
  return fmt::format("\nThe same budget, as other programs let you write it:\n{}",
                     table.draw(style));
}

}  // namespace

std::string planning_table(const Planning& planning, const Style& style) {
  std::string text;
  for (const std::string& line : describe_scenario(planning.comparison)) text += line + "\n";
  text += style.paint(origin_of_numbers(planning.comparison), Ink::Dim) + "\n\n";
  text += comparison_rows(planning.comparison, style, "json") + "\n";
  if (!planning.stages.empty()) text += draw_stages(planning, style) + "\n";
  if (!planning.groups.empty() || !planning.stages.empty())
    text += draw_groups(planning, style) + "\n";
  text += wrapped_text(planning_words(planning), style.width);
  text += cautions_text(planning.comparison, style);
  if (has_points(planning.fronts)) text += draw_fronts(planning, style);
  if (!planning.forms.empty()) text += draw_forms(planning, style);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
