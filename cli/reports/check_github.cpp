// A check as workflow commands of GitHub Actions: escaped annotations, at most ten of a kind.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/check_print.h"

namespace tidemark::cli {
namespace {

// GitHub shows ten annotations of a kind per step and drops the others in silence.
constexpr std::size_t most_annotations = 10;

// As in the toolkit of GitHub Actions (packages/core/src/command.ts): a percent sign and line ends
// in the message, and what separates properties in a property.
std::string escaped(std::string_view text, bool is_property) {
  std::string result;
  for (const char c : text) {
    const bool separates = is_property && (c == ':' || c == ',');
    if (c == '%' || c == '\r' || c == '\n' || separates) {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

struct Annotation {
  std::size_t line;
  std::string title, message;
};

std::string title_of(const regression::ExperimentVerdict& verdict) {
  const regression::MetricVerdict* largest = largest_change(verdict);
  const bool is_time = largest && largest->metric == regression::Metric::Step;
  return (is_time ? "Step time of " : "Memory of ") + verdict.id;
}

std::vector<Annotation> annotations_of(const regression::CheckReport& report) {
  std::vector<Annotation> all;
  for (const regression::Finding& finding : report.findings)
    all.push_back({finding.line, "tidemark check", finding.text});
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    if (verdict.failed())
      all.push_back({verdict.findings.front().line, title_of(verdict), findings_text(verdict)});
  return all;
}

}  // namespace

std::string check_github(const regression::CheckReport& report) {
  const std::vector<Annotation> all = annotations_of(report);
  const std::string file = escaped(path_in_repository(report), true);
  std::string text;
  const auto annotate = [&](const Annotation& annotation) {
    text += fmt::format("::error file={},line={},title={}::{}\n", file, annotation.line,
                        escaped(annotation.title, true), escaped(annotation.message, false));
  };
  const bool fits = all.size() <= most_annotations;
  const std::size_t shown = fits ? all.size() : most_annotations - 1;
  std::for_each_n(all.begin(), shown, annotate);
  if (!fits)
    annotate({1, "tidemark check",
              fmt::format("and {} more that are not as expected: the log of this step lists them",
                          all.size() - shown)});
  for (std::size_t i = shown; i < all.size(); ++i)
    text += fmt::format("tidemark: {}: {}\n", all[i].title, escaped(all[i].message, false));
  return text + "tidemark: " + check_summary(report) + "\n";
}

}  // namespace tidemark::cli
