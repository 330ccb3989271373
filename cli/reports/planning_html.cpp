// A plan as a page: the proof, decisions, what every budget costs, and for each why.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/svg.h"
#include "analysis/planning/plan_fronts.h"
#include "cli/reports/html_page.h"
#include "cli/reports/html_parts.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_planning.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

std::string cell(std::string_view text, std::string_view kind = "") {
  return fmt::format("<td{}>{}</td>", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     exports::xml_escaped(text));
}

std::string decision_row(const PlanGroup& group, const GroupLine& line, bool is_first) {
  const auto price = is_first ? price_per_gib(group) : std::nullopt;
  const bool has_sums = is_first && is_changed(group);
  return "<tr>" + cell(is_first ? group_name(group) : "") +
         cell(has_sums ? to_text(group.saved) : "") + cell(has_sums ? to_text(group.extra) : "") +
         cell(price ? to_text(*price) : "") + cell(line.decision, "text") +
         cell(line.tensors, "text wrapped") + "</tr>\n";
}

// The menu of why: what each run of blocks saves, at what price.
std::string groups_table(const Planning& planning, const std::vector<PlanGroup>& groups) {
  if (groups.empty()) return "<p>Everything is kept.</p>\n";
  std::string text =
      "<div class=\"wide\"><table>\n<thead><tr><th>blocks</th><th>saves</th><th>costs</th>"
      "<th>per GiB</th><th class=\"text\">decision</th><th class=\"text\">tensors</th></tr>"
      "</thead>\n<tbody>\n";
  for (const PlanGroup& group : groups) {
    const std::vector<GroupLine> lines = group_lines(planning, group);
    for (const GroupLine& line : lines) text += decision_row(group, line, &line == lines.data());
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string decisions(const Planning& planning, const std::vector<PlanGroup>& groups,
                      const std::vector<StagePlan>& stages) {
  if (stages.empty()) return groups_table(planning, groups);
  std::string text;
  for (const StagePlan& stage : stages)
    text += fmt::format("<p><b>{}</b>: {} in flight, allocated {}, tightest in the {}.</p>\n",
                        to_text(*stage.report.rank), stage.in_flight,
                        to_text(stage.report.allocated_peak), exports::xml_escaped(stage.binding)) +
            groups_table(planning, stage.groups);
  return text;
}

// How the tooltip of a point begins; budgets may be the same text.
std::string point_mark(const PlanFront& front, const FrontPoint& point) {
  return fmt::format("{} {}: {}, ", class_name(front.allowed), 1 + (&point - front.points.data()),
                     to_text(point.budget));
}

double slowdown_of(const Report& row, const Planning& planning) {
  const Report& vanilla = planning.comparison.rows.front();
  return static_cast<double>(row.step.count()) /
         static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
}

std::string point_body(const Planning& planning, const FrontPoint& point) {
  const std::string change = change_text(slowdown_of(point.report, planning));
  return fmt::format(
             "<p>A step of {}{}; allocated {}, reserved {}. Memory is tightest in the {}.{}</p>\n",
             to_text(point.report.step), change.empty() ? "" : fmt::format(" ({})", change),
             to_text(point.report.allocated_peak), to_text(point.report.reserved_peak),
             exports::xml_escaped(point.binding),
             exports::xml_escaped(operators_text(point.planned))) +
         decisions(planning, point.groups, point.stages);
}

// Opens where the budget that was asked for lies.
std::size_t first_point(const Planning& planning, const PlanFront& front) {
  const auto after =
      std::ranges::upper_bound(front.points, planning.budget, {}, &FrontPoint::budget);
  return after == front.points.begin() ? 0
                                       : static_cast<std::size_t>(after - front.points.begin()) - 1;
}

std::string front_section(const Planning& planning, const PlanFront& front) {
  if (front.points.empty()) return "";
  std::vector<Article> articles;
  for (const FrontPoint& point : front.points)
    articles.push_back(
        {to_text(point.budget), point_body(planning, point), point_mark(front, point)});
  return page_section(
      fmt::format("Along the front: {}", class_name(front.allowed)),
      page_slider("Budget", articles, first_point(planning, front)) +
          "<p class=\"paper\">On paper: the budget that was chosen on the screen.</p>\n");
}

std::string fronts_sections(const Planning& planning) {
  const exports::FrontsPicture picture = fronts_picture(planning);
  std::string text =
      page_section("What budgets cost",
                   page_figure([&](double width) { return exports::fronts_svg(picture, width); }));
  for (const PlanFront& front : planning.fronts) text += front_section(planning, front);
  return text;
}

}  // namespace

exports::FrontsPicture fronts_picture(const Planning& planning) {
  exports::FrontsPicture picture;
  picture.title =
      fmt::format("{} on {}: what budgets cost", planning.comparison.scenario.model.name,
                  planning.comparison.scenario.device.title);
  picture.memory = to_string(planning.request.measure);
  picture.vanilla = planning.comparison.rows.front().step;
  picture.limit = planning.budget;
  for (const PlanFront& front : planning.fronts) {
    auto& drawn = picture.fronts.emplace_back();
    drawn.name = class_name(front.allowed);
    for (const FrontPoint& point : front.points)
      drawn.points.push_back(
          {point.budget, point.report.step,
           fmt::format("{}step {}", point_mark(front, point), to_text(point.report.step))});
  }
  return picture;
}

std::string planning_html(const Planning& planning) {
  const Comparison& comparison = planning.comparison;
  return page_head(fmt::format("Tidemark: {}, a plan", comparison.scenario.model.title),
                   describe_scenario(comparison), origin_of_numbers(comparison)) +
         fmt::format("<p class=\"conclusion\">{}</p>\n",
                     exports::xml_escaped(planning_words(planning))) +
         page_section("What the plan needs and costs", report_table(comparison)) +
         page_section("What the plan decides",
                      decisions(planning, planning.groups, planning.stages)) +
         fronts_sections(planning) +
         page_section("What the numbers assume", assumptions(comparison)) +
         page_tail(planning_json(planning));
}

}  // namespace tidemark::cli
