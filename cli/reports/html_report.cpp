// Puts the page together: embedded style and script, text, tables and inline SVG.
#include "cli/reports/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"
#include "analysis/recording/predicted_recording.h"
#include "analysis/sweep.h"
#include "cli/reports/html_page.h"
#include "cli/reports/html_parts.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "cli/reports/sweep_groups.h"

namespace tidemark::cli {

namespace {

std::string head(std::span<const Comparison> comparisons) {
  const Comparison& comparison = comparisons.front();
  const bool is_sweep = comparisons.size() > 1;
  return page_head(
      fmt::format("Tidemark: {}{}", comparison.scenario.model.title, is_sweep ? ", a sweep" : ""),
      is_sweep ? describe_sweep(comparisons) : describe_scenario(comparison),
      origin_of_numbers(comparisons));
}

std::string tail(std::span<const Comparison> comparisons) {
  return page_tail(comparisons.size() == 1 ? comparison_json(comparisons.front())
                                           : sweep_json(comparisons));
}

bool knows_batches(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows,
                             [](const Report& row) { return row.batches.has_value(); });
}

std::string pictures(const Comparison& comparison) {
  const std::string& model = comparison.scenario.model.name;
  const exports::Tradeoff tradeoff{
      comparison.rows, comparison.budget.capacity,
      fmt::format("{} on {}", model, comparison.scenario.device.title)};
  std::string text = page_section("What memory costs in time", page_figure([&](double width) {
                                    return exports::tradeoff_svg(tradeoff, width);
                                  }));
  if (knows_batches(comparison))
    text += page_section("Largest batch", page_figure([&](double width) {
                           return exports::batches_svg(comparison.rows, model, width);
                         }));
  return text;
}

// On the same axes, so that a glance from one strategy to the next compares them.
std::string steps(const Comparison& comparison, std::string_view first) {
  const std::vector<Recording> recordings = recordings_of(comparison);
  if (recordings.empty()) return "";
  const exports::StepExtent extent = exports::extent_of(recordings);
  std::vector<Article> articles;
  for (const Recording& recording : recordings)
    articles.push_back({recording.strategy, page_figure([&](double width) {
                                              return exports::memory_svg(recording, extent, width);
                                            }) + page_figure([&](double width) {
                                              return exports::icicle_svg(recording, width);
                                            })});
  return page_section(
      "The step", page_choice("Strategy", articles, first) +
                      "<p class=\"paper\">On paper: the strategy that was chosen on the screen; "
                      "\"all\" prints all.</p>\n");
}

std::string sweep_pictures(std::span<const Comparison> points) {
  const auto page = sweep_svgs(points, exports::page_width),
             phone = sweep_svgs(points, exports::phone_width);
  std::string text;
  for (std::size_t i = 0; i < page.size(); ++i)
    text += page_figure(
        [&](double width) { return width == exports::page_width ? page[i] : phone[i]; });
  return page_section("Over the sweep", text);
}

std::string point_body(const Comparison& point, const exports::TradeoffExtent& extent,
                       const std::string& name) {
  const exports::Tradeoff tradeoff{point.rows, point.budget.capacity, name};
  return fmt::format("<p class=\"conclusion\">{}</p>\n",
                     exports::xml_escaped(to_text(point.conclusion))) +
         report_table(point) +
         page_figure([&](double width) { return exports::tradeoff_svg(tradeoff, extent, width); });
}

std::string body(const Comparison& comparison, std::string_view first) {
  return fmt::format("<p class=\"conclusion\">{}</p>\n",
                     exports::xml_escaped(to_text(comparison.conclusion))) +
         page_section("What each strategy needs and costs", report_table(comparison)) +
         pictures(comparison) + steps(comparison, first) +
         page_section("What the numbers assume", assumptions(comparison));
}

std::string sweep_body(std::span<const Comparison> points) {
  const std::vector<std::string> names = point_names(points);
  exports::TradeoffExtent extent;
  for (const Comparison& point : points) extent.include(point.rows);
  std::vector<Article> articles;
  for (std::size_t i = 0; i < points.size(); ++i)
    articles.push_back({names[i], point_body(points[i], extent, names[i])});
  std::string summaries;
  for (const std::string& line : fit_summaries(points))
    summaries += fmt::format("<li>{}</li>\n", exports::xml_escaped(line));
  return sweep_pictures(points) + page_section("What fits", "<ul>\n" + summaries + "</ul>\n") +
         page_section("Each point", page_choice("Point", articles, ""), "points") +
         page_section("What the numbers assume", assumptions(points.front()));
}

}  // namespace

std::string html_report(std::span<const Comparison> comparisons, std::string_view first) {
  const bool is_sweep = comparisons.size() > 1;
  return head(comparisons) +
         (is_sweep ? sweep_body(comparisons) : body(comparisons.front(), first)) +
         tail(comparisons);
}

}  // namespace tidemark::cli
