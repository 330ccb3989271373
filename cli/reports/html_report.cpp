// Puts the page together: embedded style and script, text, tables and inline SVG.
#include "cli/reports/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"
#include "analysis/recording/predicted_recording.h"
#include "analysis/sweep.h"
#include "base/embedded_file.h"
#include "cli/reports/html_parts.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "cli/reports/sweep_groups.h"

namespace tidemark::cli {

std::span<const EmbeddedFile> embedded_report();  // report.css, report.js

namespace {

std::string_view embedded(std::string_view name) {
  const auto files = embedded_report();
  return std::ranges::find(files, name, &EmbeddedFile::name)->text;
}

// The same picture for a page and, with as large letters, for a phone; the style sheet shows one.
// `draw` takes the width.
template <typename Draw>
std::string figure(Draw draw) {
  return fmt::format(
      "<figure class=\"page\">\n{}</figure>\n<figure class=\"phone\">\n{}</figure>\n",
      draw(exports::page_width), draw(exports::phone_width));
}

struct Article {
  std::string name, body;
};

// One article at a time on a screen with scripts; all of them, one after the other, without.
std::string choice(std::string_view what, const std::vector<Article>& articles,
                   std::string_view first) {
  std::string text =
      fmt::format("<p class=\"choice screen\" hidden><label>{}: <select data-first=\"{}\">\n", what,
                  exports::xml_escaped(first));
  for (const Article& article : articles)
    text += fmt::format("<option>{}</option>\n", exports::xml_escaped(article.name));
  text += "<option value=\"\">all</option>\n</select></label></p>\n";
  for (const Article& article : articles)
    text += fmt::format("<article data-name=\"{0}\">\n<h3>{0}</h3>\n{1}</article>\n",
                        exports::xml_escaped(article.name), article.body);
  return text;
}

std::string head(std::span<const Comparison> comparisons) {
  const Comparison& comparison = comparisons.front();
  const bool is_sweep = comparisons.size() > 1;
  std::string text;
  const std::string title =
      fmt::format("Tidemark: {}{}", comparison.scenario.model.title, is_sweep ? ", a sweep" : "");
  text += fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}"
      "</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
      exports::xml_escaped(title), embedded("report.css"), exports::xml_escaped(title));
  const auto lines = is_sweep ? describe_sweep(comparisons) : describe_scenario(comparison);
  for (const std::string& line : lines)
    text += fmt::format("<p>{}</p>\n", exports::xml_escaped(line));
  return text + "<p class=\"soft\">All numbers are predicted.</p>\n</header>\n";
}

std::string tail(std::span<const Comparison> comparisons) {
  const std::string json =
      comparisons.size() == 1 ? comparison_json(comparisons.front()) : sweep_json(comparisons);
  return fmt::format(
      "<footer><p>Tidemark {}. The numbers of this page, exact and for programs, stand in its "
      "source as JSON.</p></footer>\n<div id=\"tip\" hidden></div>\n"
      "<script type=\"application/json\" id=\"data\">\n{}</script>\n<script>\n{}</script>\n"
      "</body>\n</html>\n",
      TIDEMARK_VERSION, script_escaped(json), embedded("report.js"));
}

std::string section(std::string_view title, const std::string& body, std::string_view kind = "") {
  return fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n",
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     exports::xml_escaped(title), body);
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
  std::string text =
      section("What memory costs in time",
              figure([&](double width) { return exports::tradeoff_svg(tradeoff, width); }));
  if (knows_batches(comparison))
    text += section("Largest batch", figure([&](double width) {
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
    articles.push_back({recording.strategy, figure([&](double width) {
                                              return exports::memory_svg(recording, extent, width);
                                            }) + figure([&](double width) {
                                              return exports::icicle_svg(recording, width);
                                            })});
  return section("The step",
                 choice("Strategy", articles, first) +
                     "<p class=\"paper\">On paper: the strategy that was chosen on the screen; "
                     "\"all\" prints all.</p>\n");
}

std::string sweep_pictures(std::span<const Comparison> points) {
  const auto page = sweep_svgs(points, exports::page_width),
             phone = sweep_svgs(points, exports::phone_width);
  std::string text;
  for (std::size_t i = 0; i < page.size(); ++i)
    text += figure([&](double width) { return width == exports::page_width ? page[i] : phone[i]; });
  return section("Over the sweep", text);
}

std::string point_body(const Comparison& point, const exports::TradeoffExtent& extent,
                       const std::string& name) {
  const exports::Tradeoff tradeoff{point.rows, point.budget.capacity, name};
  return fmt::format("<p class=\"conclusion\">{}</p>\n",
                     exports::xml_escaped(to_text(point.conclusion))) +
         report_table(point) +
         figure([&](double width) { return exports::tradeoff_svg(tradeoff, extent, width); });
}

std::string body(const Comparison& comparison, std::string_view first) {
  return fmt::format("<p class=\"conclusion\">{}</p>\n",
                     exports::xml_escaped(to_text(comparison.conclusion))) +
         section("What each strategy needs and costs", report_table(comparison)) +
         pictures(comparison) + steps(comparison, first) +
         section("What the numbers assume", assumptions(comparison));
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
  return sweep_pictures(points) + section("What fits", "<ul>\n" + summaries + "</ul>\n") +
         section("Each point", choice("Point", articles, ""), "points") +
         section("What the numbers assume", assumptions(points.front()));
}

}  // namespace

std::string html_report(std::span<const Comparison> comparisons, std::string_view first) {
  const bool is_sweep = comparisons.size() > 1;
  return head(comparisons) +
         (is_sweep ? sweep_body(comparisons) : body(comparisons.front(), first)) +
         tail(comparisons);
}

}  // namespace tidemark::cli
