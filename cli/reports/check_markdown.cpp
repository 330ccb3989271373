// A check as Markdown for job summaries: a table of metrics for each failed experiment.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/check_print.h"
#include "cli/text/csv.h"

namespace tidemark::cli {
namespace {

// A job summary holds 1 MiB; an experiment in full takes about 4 KiB of it.
constexpr std::size_t most_sections = 100;
constexpr std::size_t most_change_rows = 12;

// What Markdown and HTML would take for markup. Names of experiments and tensors are other
// people's.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("\\`*_[]#~").find(c) != std::string_view::npos) escaped += '\\';
    if (c == '<' || c == '&') {
      escaped += c == '<' ? "&lt;" : "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Within backquotes nothing is markup but the backquote.
std::string code(std::string_view text) {
  std::string shown = printable(text, 200);
  std::ranges::replace(shown, '`', '\'');
  return "`" + shown + "`";
}

std::string metric_rows(const regression::ExperimentVerdict& verdict) {
  std::string text = markdown_line({"number", "expected", "now", "change", "tolerance", ""}) +
                     markdown_line({"---", "--:", "--:", "--:", "--:", "---"});
  for (const regression::MetricVerdict& metric : verdict.metrics) {
    const bool is_known = metric.expected && metric.now;
    const std::int64_t change = is_known ? *metric.now - *metric.expected : 0;
    text += markdown_line(
        {std::string(row_of(metric.metric).name), known_text(metric.metric, metric.expected),
         known_text(metric.metric, metric.now),
         is_known ? fmt::format("{} {}", change_text(metric.metric, change),
                                regression::percent_text(*metric.expected, change))
                  : "",
         metric.is_checked ? to_text(metric.metric, metric.tolerance) : "not checked",
         metric.is_outside ? "**outside**" : ""});
  }
  return text;
}

std::string change_rows(const regression::ExperimentVerdict& verdict) {
  std::string text =
      fmt::format("\nAt the peak, {}:\n\n", plain(verdict.peak_now)) +
      markdown_line({"change", "before", "now", "tensors", "what", "contents", "decision"}) +
      markdown_line({"--:", "--:", "--:", "--:", "---", "---", "---"});
  const std::size_t shown = std::min(most_change_rows, verdict.changes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const regression::PeakChange& change = verdict.changes[i];
    const char* mark = change.is_new     ? "**NEW** "
                       : change.is_gone  ? "**GONE** "
                       : change.is_bound ? "at least "
                                         : "";
    text += markdown_line({mark + change_text(regression::Metric::Live, change.change().count),
                           change.is_bound ? "unknown" : to_text(change.before.bytes),
                           to_text(change.now.bytes), fmt::format("{}", change.now.tensors),
                           change.now.role.empty() ? "scratch memory" : code(change.now.role),
                           change.now.contents, plain(change.now.decision)});
  }
  if (shown < verdict.changes.size())
    text +=
        fmt::format("\n… and {} more (the JSON report has all)\n", verdict.changes.size() - shown);
  if (verdict.rest.change() != Bytes{})
    text += fmt::format("\nAll groups that the baseline keeps as one: {} → {}\n",
                        to_text(verdict.rest.before.bytes), to_text(verdict.rest.now.bytes));
  return text;
}

std::string time_rows(const regression::ExperimentVerdict& verdict) {
  std::string text = "\nIn the step:\n\n" +
                     markdown_line({"change", "before", "now", "runs", "what runs", "stream"}) +
                     markdown_line({"--:", "--:", "--:", "--:", "---", "--:"});
  const std::size_t shown = std::min(most_change_rows, verdict.time_changes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const regression::TimeChange& change = verdict.time_changes[i];
    const char* mark = change.is_new     ? "**NEW** "
                       : change.is_gone  ? "**GONE** "
                       : change.is_bound ? "at least "
                                         : "";
    text += markdown_line({mark + change_text(regression::Metric::Step, change.change().count()),
                           change.is_bound ? "unknown" : to_text(change.before.time),
                           to_text(change.now.time), fmt::format("{}", change.now.runs),
                           name_of(change.now), fmt::format("{}", change.now.stream)});
  }
  if (shown < verdict.time_changes.size())
    text += fmt::format("\n… and {} more (the JSON report has all)\n",
                        verdict.time_changes.size() - shown);
  return text;
}

std::string failed_section(const regression::ExperimentVerdict& verdict) {
  std::string text =
      fmt::format("\n### {} (line {})\n\n", code(verdict.id), verdict.findings.front().line);
  for (const regression::Finding& finding : verdict.findings)
    if (!is_in_table(finding))
      text += fmt::format("* **{}**: {} (line {})\n", to_string(finding.kind), plain(finding.text),
                          finding.line);
  for (const std::string* cause : {&verdict.cause, &verdict.time_cause})
    if (!cause->empty()) text += fmt::format("* **cause**: {}\n", plain(*cause));
  for (const std::string& note : verdict.notes) text += fmt::format("* {}\n", plain(note));
  if (!verdict.metrics.empty()) text += "\n" + metric_rows(verdict);
  if (!verdict.changes.empty()) text += change_rows(verdict);
  return verdict.time_changes.empty() ? text : text + time_rows(verdict);
}

}  // namespace

std::string check_markdown(const regression::CheckReport& report) {
  std::string text =
      fmt::format("## {} Memory: {}\n", report.failed() ? "❌" : "✅", plain(check_summary(report)));
  if (!report.findings.empty()) text += "\n";
  for (const regression::Finding& finding : report.findings)
    text += fmt::format("* **{}**: {} (line {})\n", to_string(finding.kind), plain(finding.text),
                        finding.line);
  std::size_t shown = 0;
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    if (verdict.failed() && ++shown <= most_sections) text += failed_section(verdict);
  if (shown > most_sections)
    text += fmt::format("\n… and {} more that are not as expected (the JSON report has all)\n",
                        shown - most_sections);
  if (report.failed())
    text += fmt::format("\nIf this is meant: `{}`, and commit the difference.\n",
                        update_command(report));
  return text;
}

}  // namespace tidemark::cli
