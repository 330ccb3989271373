// Picks the printer of a format; holds what printers share, such as the summary and findings.
#include "cli/reports/check_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/quoted.h"
#include "cli/commands/option_table.h"

namespace tidemark::cli {

std::string print(const regression::CheckReport& report, CheckFormat format, const Style& style) {
  switch (format) {
    case CheckFormat::Json:
      return check_json(report);
    case CheckFormat::Markdown:
      return check_markdown(report);
    case CheckFormat::Github:
      return check_github(report);
    case CheckFormat::Junit:
      return check_junit(report);
    case CheckFormat::Sarif:
      return check_sarif(report);
    case CheckFormat::SmallerIsBetter:
      return check_smaller_is_better(report);
    case CheckFormat::Bmf:
      return check_bmf(report);
    case CheckFormat::Table:
      break;
  }
  return check_table(report, style);
}

std::string check_summary(const regression::CheckReport& report) {
  const std::size_t all = report.experiments.size(), failed = report.failures();
  const std::string count =
      fmt::format("{}: {} experiment{}", printable(report.path, 200), all, all == 1 ? "" : "s");
  if (!report.findings.empty() && failed == 0) return count + ", not compared";
  if (failed == 0) return count + ", all as expected";
  return fmt::format("{}, {} as expected, {} not", count, all - failed, failed);
}

std::string update_command(const regression::CheckReport& report) {
  return fmt::format("tidemark check {} --update", shell_quoted(report.path));
}

bool is_in_table(const regression::Finding& finding) {
  return finding.kind == regression::FindingKind::Grew ||
         finding.kind == regression::FindingKind::Shrank;
}

const regression::MetricVerdict* largest_change(const regression::ExperimentVerdict& verdict) {
  const regression::MetricVerdict* largest = nullptr;
  std::pair<bool, double> most;
  for (const regression::MetricVerdict& metric : verdict.metrics) {
    if (!metric.is_outside || !metric.expected || !metric.now) continue;
    const auto expected = static_cast<double>(std::max<std::int64_t>(1, *metric.expected));
    const double share = std::abs(static_cast<double>(*metric.now - *metric.expected)) / expected;
    // This is a gate for memory: a time that changed more does not hide the bytes.
    const std::pair rank(metric.metric != regression::Metric::Step, share);
    if (!largest || rank > most) largest = &metric, most = rank;
  }
  return largest;
}

std::string findings_text(const regression::ExperimentVerdict& verdict) {
  std::string text;
  const auto add = [&](const std::string& line) {
    text.append(text.empty() ? "" : "\n").append(line);
  };
  for (const regression::Finding& finding : verdict.findings) add(finding.text);
  if (!verdict.cause.empty()) add("cause: " + verdict.cause);
  if (!verdict.time_cause.empty()) add("cause: " + verdict.time_cause);
  for (const std::string& note : verdict.notes) add(note);
  return text;
}

std::string path_in_repository(const regression::CheckReport& report) {
  return std::filesystem::path(report.path).lexically_normal().generic_string();
}

std::string known_text(regression::Metric metric, std::optional<std::int64_t> value) {
  return value ? to_text(metric, *value) : "";
}

}  // namespace tidemark::cli
