// A check as JUnit XML: one test case per experiment, with all of its findings as one failure.
#include <fmt/format.h>

#include "analysis/check/cause.h"
#include "cli/reports/check_print.h"
#include "cli/reports/json_text.h"

namespace tidemark::cli {
namespace {

// XML 1.0 has no way to write control characters, and no bytes that are not UTF-8.
std::string xml(std::string_view text) {
  // nlohmann replaces what is not UTF-8 when it writes, and then reads it back.
  const std::string valid =
      Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
  std::string escaped;
  for (const char c : valid) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F ? '?' : c;
    }
  }
  return escaped;
}

// Many viewers show the message alone, so the cause stands in it.
std::string failures(const std::vector<regression::Finding>& findings, const std::string& cause,
                     const std::string& text) {
  const std::string message = findings.front().text + (cause.empty() ? "" : "; " + cause);
  return fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                     to_string(findings.front().kind), xml(message), xml(text));
}

std::string test_case(const regression::CheckReport& report, const std::string& name,
                      const std::string& content) {
  const std::string head =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml(report.path), xml(name));
  return content.empty() ? head + "/>\n" : fmt::format("{}>\n{}    </testcase>\n", head, content);
}

std::string numbers(const regression::ExperimentVerdict& verdict) {
  std::string text;
  for (const regression::MetricVerdict& metric : verdict.metrics) {
    const regression::MetricRow& row = row_of(metric.metric);
    text += fmt::format("{}: {} {}{}\n", row.name,
                        metric.now ? fmt::format("{}", *metric.now) : "not measured", row.unit,
                        metric.expected ? fmt::format(", expected {}", *metric.expected) : "");
  }
  return text;
}

std::string experiment_case(const regression::CheckReport& report,
                            const regression::ExperimentVerdict& verdict) {
  std::string content;
  // One test case has one failure, with all that was found.
  if (verdict.failed())
    content += failures(verdict.findings, cause_of(verdict, verdict.findings.front()),
                        findings_text(verdict));
  const std::string output = numbers(verdict);
  if (!output.empty()) content += fmt::format("      <system-out>{}</system-out>\n", xml(output));
  return test_case(report, verdict.id, content);
}

}  // namespace

std::string check_junit(const regression::CheckReport& report) {
  std::string cases;
  std::size_t tests = report.experiments.size(), failed = report.failures();
  if (!report.findings.empty()) {
    std::string text;
    for (const regression::Finding& finding : report.findings) text += finding.text + "\n";
    cases += test_case(report, "baseline", failures(report.findings, "", text));
    ++tests;
    ++failed;
  }
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    cases += experiment_case(report, verdict);
  const std::string counts = fmt::format(
      "name=\"tidemark check\" tests=\"{}\" failures=\"{}\" errors=\"0\"", tests, failed);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n  <testsuite {}>\n{}"
      "  </testsuite>\n</testsuites>\n",
      counts, counts, cases);
}

}  // namespace tidemark::cli
