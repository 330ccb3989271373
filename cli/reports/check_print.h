// A check in eight formats: for people, for pull requests, for CI systems and for dashboards.
// Printers format what the report holds; they judge nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/check/verdict.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

enum class CheckFormat : unsigned char {
  Table,
  Json,
  Markdown,
  Github,
  Junit,
  Sarif,
  SmallerIsBetter,
  Bmf,
};

inline constexpr std::array check_formats = {
    Named{CheckFormat::Table, std::string_view("table")},
    Named{CheckFormat::Json, std::string_view("json")},
    Named{CheckFormat::Markdown, std::string_view("markdown")},
    Named{CheckFormat::Github, std::string_view("github")},
    Named{CheckFormat::Junit, std::string_view("junit")},
    Named{CheckFormat::Sarif, std::string_view("sarif")},
    Named{CheckFormat::SmallerIsBetter, std::string_view("customSmallerIsBetter")},
    Named{CheckFormat::Bmf, std::string_view("bmf")}};
static_assert(is_in_order(check_formats));

std::string print(const regression::CheckReport& report, CheckFormat format, const Style& style);

/// For people.
std::string check_table(const regression::CheckReport& report, const Style& style);
/// For programs: everything, exact; docs/check.md lists the keys.
std::string check_json(const regression::CheckReport& report);
/// For the summary of a CI job or a comment on a pull request.
std::string check_markdown(const regression::CheckReport& report);
/// Workflow commands of GitHub Actions: annotations at the lines of the check file.
std::string check_github(const regression::CheckReport& report);
/// JUnit XML as Jenkins and GitLab read it: one test case per experiment.
std::string check_junit(const regression::CheckReport& report);
/// SARIF 2.1.0 for code-scanning views: one result per finding.
std::string check_sarif(const regression::CheckReport& report);
/// The format of github-action-benchmark: every number that is known now.
std::string check_smaller_is_better(const regression::CheckReport& report);
/// Bencher Metric Format: the same for Bencher.
std::string check_bmf(const regression::CheckReport& report);

// What several of them say.

/// Empty where the number is not known.
std::string known_text(regression::Metric metric, std::optional<std::int64_t> value);

/// The number outside its tolerance that changed by the largest share, of memory before time; none
/// where no number did.
const regression::MetricVerdict* largest_change(const regression::ExperimentVerdict& verdict);

/// "tidemark.json: 12 experiments, 10 as expected, 2 not"
std::string check_summary(const regression::CheckReport& report);
/// "tidemark check ci/tidemark.json --update"
std::string update_command(const regression::CheckReport& report);
/// A number out of its tolerance: tables of numbers show it already.
bool is_in_table(const regression::Finding& finding);
/// Every finding of an experiment, its cause and its notes, one per line.
std::string findings_text(const regression::ExperimentVerdict& verdict);
/// The path of the check file with '/' and without "./" in front.
std::string path_in_repository(const regression::CheckReport& report);

}  // namespace tidemark::cli
