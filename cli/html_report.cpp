#include "cli/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/html_parts.h"
#include "cli/print_comparison.h"
#include "cli/print_sweep.h"
#include "cli/sweep_groups.h"
#include "simulator/export/pictures.h"
#include "simulator/export/svg.h"
#include "simulator/recording/predicted_recording.h"
#include "simulator/sweep.h"
#include "traces/embedded_file.h"

namespace tidemark {

std::span<const EmbeddedFile> embedded_report();  // report.css, report.js

namespace {

std::string_view embedded(std::string_view name) {
  const auto files = embedded_report();
  return std::ranges::find(files, name, &EmbeddedFile::name)->text;
}

// Inline, an SVG needs neither its namespace nor a size.
std::string figure(const std::string& svg) {
  return "<figure class=\"wide\">\n" + svg + "</figure>\n";
}

std::string head(std::span<const Comparison> comparisons) {
  const Comparison& comparison = comparisons.front();
  const bool is_sweep = comparisons.size() > 1;
  std::string text;
  const std::string title =
      fmt::format("Tidemark: {}{}", comparison.question.model.title, is_sweep ? ", a sweep" : "");
  text += fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}"
      "</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
      xml_escaped(title), embedded("report.css"), xml_escaped(title));
  const auto lines = is_sweep ? describe_sweep(comparisons) : describe_question(comparison);
  for (const std::string& line : lines) text += fmt::format("<p>{}</p>\n", xml_escaped(line));
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

std::string section(std::string_view title, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", xml_escaped(title), body);
}

bool knows_batches(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows,
                             [](const Report& row) { return row.batches.has_value(); });
}

std::string pictures(const Comparison& comparison) {
  const std::string& model = comparison.question.model.name;
  std::string text = section(
      "What memory costs in time",
      figure(tradeoff_svg(comparison.rows, comparison.room.capacity,
                          fmt::format("{} on {}", model, comparison.question.device.title))));
  if (knows_batches(comparison))
    text += section("Largest batch", figure(batches_svg(comparison.rows, model)));
  return text;
}

// One strategy at a time on a screen with scripts; all of them, one after the other, without.
std::string steps(const Comparison& comparison, std::string_view first) {
  const std::vector<Recording> recordings = recordings_of(comparison);
  if (recordings.empty()) return "";
  std::string text = fmt::format(
      "<p id=\"choice\" class=\"screen\" hidden><label>Strategy: "
      "<select id=\"strategy\" data-first=\"{}\">\n",
      xml_escaped(first));
  for (const Recording& recording : recordings)
    text += fmt::format("<option>{}</option>\n", xml_escaped(recording.strategy));
  text += "</select></label></p>\n";
  for (const Recording& recording : recordings)
    text += fmt::format("<article data-strategy=\"{0}\">\n<h3>{0}</h3>\n{1}{2}</article>\n",
                        xml_escaped(recording.strategy), figure(memory_svg(recording)),
                        figure(icicle_svg(recording)));
  return section("The step", text);
}

std::string sweep_pictures(std::span<const Comparison> points) {
  const std::vector<std::string> pictures = sweep_svgs(points);
  std::string text;
  for (const std::string& picture : pictures) text += figure(picture);
  return section("Over the sweep", text);
}

std::string body(const Comparison& comparison, std::string_view first) {
  return fmt::format("<p class=\"conclusion\">{}</p>\n",
                     xml_escaped(to_text(comparison.conclusion))) +
         section("What each strategy needs and costs", report_table(comparison)) +
         pictures(comparison) + steps(comparison, first) +
         section("What the numbers assume", assumptions(comparison));
}

std::string sweep_body(std::span<const Comparison> points) {
  std::string text = sweep_pictures(points);
  const std::vector<std::string> names = point_names(points);
  std::string details;
  for (std::size_t i = 0; i < points.size(); ++i)
    details += fmt::format(
        "<details{}><summary>{}</summary>\n<p class=\"conclusion\">{}</p>\n{}{}</details>\n",
        i == 0 ? " open" : "", xml_escaped(names[i]), xml_escaped(to_text(points[i].conclusion)),
        report_table(points[i]),
        figure(tradeoff_svg(points[i].rows, points[i].room.capacity, names[i])));
  std::string summaries;
  for (const std::string& line : fit_summaries(points))
    summaries += fmt::format("<li>{}</li>\n", xml_escaped(line));
  return text + section("What fits", "<ul>\n" + summaries + "</ul>\n") +
         section("Each point", details) +
         section("What the numbers assume", assumptions(points.front()));
}

}  // namespace

std::string html_report(std::span<const Comparison> comparisons, std::string_view first) {
  const bool is_sweep = comparisons.size() > 1;
  return head(comparisons) +
         (is_sweep ? sweep_body(comparisons) : body(comparisons.front(), first)) +
         tail(comparisons);
}

}  // namespace tidemark
