// A check for people: what changed in the failed experiments; beyond a few, they are counted.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/check_print.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

// What is shown in full; the rest is counted.
constexpr std::size_t most_lines = 20;
constexpr std::size_t most_experiments = 5;
constexpr std::size_t most_changes = 8;
constexpr std::size_t most_times = 4;

// Numbers with nothing to compare them with, in one line.
std::string numbers_now(const regression::ExperimentVerdict& verdict) {
  std::string text;
  for (const regression::MetricVerdict& metric : verdict.metrics)
    text += fmt::format("{} {} {}", text.empty() ? "now:" : " ·", row_of(metric.metric).name,
                        known_text(metric.metric, metric.now));
  return text + "\n";
}

std::string metric_table(const regression::ExperimentVerdict& verdict, const Style& style) {
  if (std::ranges::none_of(verdict.metrics, [](const auto& m) { return m.expected.has_value(); }))
    return numbers_now(verdict);
  if (std::ranges::all_of(verdict.metrics, [](const auto& m) { return m.expected == m.now; }))
    return "no number changed\n";
  TextTable table;
  table.add_column({"number", Align::Left});
  table.add_column({"expected"});
  table.add_column({"now"});
  table.add_column({"change"});
  table.add_column({"", Align::Right, 9});
  table.add_column({"tolerance"});
  for (const regression::MetricVerdict& metric : verdict.metrics) {
    const bool is_known = metric.expected && metric.now;
    const std::int64_t change = is_known ? *metric.now - *metric.expected : 0;
    const Ink ink = !metric.is_outside ? Ink::Plain : change < 0 ? Ink::Good : Ink::Bad;
    table.add_row({{std::string(row_of(metric.metric).name)},
                   {known_text(metric.metric, metric.expected)},
                   {known_text(metric.metric, metric.now)},
                   {is_known ? change_text(metric.metric, change) : "", ink},
                   {is_known ? regression::percent_text(*metric.expected, change) : "", ink},
                   {metric.is_checked ? to_text(metric.metric, metric.tolerance) : "not checked"}});
  }
  return table.draw(style);
}

std::string mark_of(const regression::PeakChange& change) {
  return change.is_new ? "[NEW] " : change.is_gone ? "[GONE] " : change.is_bound ? "at least " : "";
}

// What a group was and is, where both are known.
std::string then_and_now(const regression::PeakChange& change,
                         std::string regression::PeakGroup::*member) {
  const std::string &before = change.before.*member, &now = change.now.*member;
  const bool is_same = before == now || change.is_new || change.is_gone || change.is_bound;
  return is_same ? now : fmt::format("{} → {}", before.empty() ? "none" : before, now);
}

std::string counts_text(std::int64_t before, std::int64_t now) {
  return before == now ? fmt::format("{}", now) : fmt::format("{} → {}", before, now);
}

std::vector<TextCell> change_row(const regression::PeakChange& change, const SizeUnit& size) {
  const bool knows_before = !change.is_bound;
  return {{mark_of(change) + change_text(regression::Metric::Live, change.change().count),
           change.change().count > 0 ? Ink::Bad : Ink::Good},
          {knows_before ? size(change.before.bytes) : "unknown"},
          {size(change.now.bytes)},
          {knows_before ? counts_text(change.before.tensors, change.now.tensors)
                        : fmt::format("{}", change.now.tensors)},
          {change.now.role.empty() ? "scratch memory" : printable(change.now.role, 60)},
          {change.now.contents},
          {then_and_now(change, &regression::PeakGroup::op)},
          {then_and_now(change, &regression::PeakGroup::decision)}};
}

void add_change_columns(TextTable& table, const SizeUnit& size) {
  const std::string unit(size.name());
  table.add_column({"change"});
  table.add_column({"before", Align::Right, 10, unit});
  table.add_column({"now", Align::Right, 10, unit});
  table.add_column({"tensors", Align::Right, 8});
  table.add_column({"what, in all blocks", Align::Left});
  table.add_column({"contents", Align::Left, 9});
  table.add_column({"op", Align::Left, 7});
  table.add_column({"decision", Align::Left, 9});
}

Bytes largest_of(const std::vector<regression::PeakChange>& changes) {
  Bytes largest;
  for (const regression::PeakChange& change : changes)
    largest = std::max({largest, change.before.bytes, change.now.bytes});
  return largest;
}

std::string more_changes(const regression::ExperimentVerdict& verdict) {
  if (verdict.changes.size() <= most_changes) return "";
  Bytes sum;
  for (std::size_t i = most_changes; i < verdict.changes.size(); ++i)
    sum += verdict.changes[i].change();
  return fmt::format("… and {} more, {} together (--format json has all)\n",
                     verdict.changes.size() - most_changes,
                     change_text(regression::Metric::Live, sum.count));
}

std::string rest_line(const regression::ExperimentVerdict& verdict) {
  const regression::PeakChange& rest = verdict.rest;
  if (rest.before.bytes == rest.now.bytes) return "";
  const bool has_bounds = std::ranges::any_of(verdict.changes, &regression::PeakChange::is_bound);
  return fmt::format("All groups that the baseline keeps as one{}: {} → {}\n",
                     has_bounds ? " (those \"at least\" among them)" : "",
                     to_text(rest.before.bytes), to_text(rest.now.bytes));
}

std::string peak_text(const regression::ExperimentVerdict& verdict, const Style& style) {
  if (verdict.changes.empty() && verdict.rest.change() == Bytes{}) return "";
  std::string text =
      verdict.peak_before == verdict.peak_now
          ? fmt::format("\nAt the peak, {}:\n", verdict.peak_now)
          : fmt::format("\nAt the peak, once {}, now {}:\n", verdict.peak_before, verdict.peak_now);
  if (!verdict.changes.empty()) {
    TextTable table;
    const SizeUnit size(largest_of(verdict.changes));
    add_change_columns(table, size);
    const std::size_t shown = std::min(most_changes, verdict.changes.size());
    for (std::size_t i = 0; i < shown; ++i) table.add_row(change_row(verdict.changes[i], size));
    text += table.draw(style, "--format json");
  }
  return text + more_changes(verdict) + rest_line(verdict);
}

std::vector<TextCell> time_row(const regression::TimeChange& change, const TimeUnit& unit) {
  const char* mark = change.is_new     ? "[NEW] "
                     : change.is_gone  ? "[GONE] "
                     : change.is_bound ? "at least "
                                       : "";
  const bool knows_before = !change.is_bound;
  const std::int64_t amount = change.change().count();
  return {{mark + change_text(regression::Metric::Step, amount), amount > 0 ? Ink::Bad : Ink::Good},
          {knows_before ? unit(change.before.time) : "unknown"},
          {unit(change.now.time)},
          {knows_before ? counts_text(change.before.runs, change.now.runs)
                        : fmt::format("{}", change.now.runs)},
          {name_of(change.now)},
          {fmt::format("{}", change.now.stream)}};
}

std::string time_text(const regression::ExperimentVerdict& verdict, const Style& style) {
  if (verdict.time_changes.empty()) return "";
  Nanoseconds longest{};
  for (const regression::TimeChange& change : verdict.time_changes)
    longest = std::max({longest, change.before.time, change.now.time});
  const TimeUnit unit(longest);
  TextTable table;
  table.add_column({"change"});
  table.add_column({"before", Align::Right, 10, std::string(unit.name())});
  table.add_column({"now", Align::Right, 10, std::string(unit.name())});
  table.add_column({"runs", Align::Right, 8});
  table.add_column({"what runs", Align::Left});
  table.add_column({"stream", Align::Right, 9});
  const std::size_t shown = std::min(most_times, verdict.time_changes.size());
  for (std::size_t i = 0; i < shown; ++i) table.add_row(time_row(verdict.time_changes[i], unit));
  std::string text = "\nIn the step:\n" + table.draw(style, "--format json");
  if (shown == verdict.time_changes.size()) return text;
  Nanoseconds sum{};
  for (std::size_t i = shown; i < verdict.time_changes.size(); ++i)
    sum += verdict.time_changes[i].change();
  return text + fmt::format("… and {} more, {} together (--format json has all)\n",
                            verdict.time_changes.size() - shown,
                            change_text(regression::Metric::Step, sum.count()));
}

// Where several failed: each in a line, so that the one that matters is found.
std::string overview(const regression::CheckReport& report, const Style& style) {
  if (report.failures() < 2) return "";
  TextTable table;
  table.add_column({"not as expected", Align::Left});
  table.add_column({"largest change", Align::Left});
  table.add_column({"expected"});
  table.add_column({"now"});
  table.add_column({"change"});
  table.add_column({"", Align::Right, 9});
  std::size_t shown = 0;
  for (const regression::ExperimentVerdict& verdict : report.experiments) {
    if (!verdict.failed() || ++shown > most_lines) continue;
    const regression::MetricVerdict* largest = largest_change(verdict);
    if (!largest) {
      table.add_row({{printable(verdict.id, 100)},
                     {std::string(to_string(verdict.findings.front().kind))},
                     {},
                     {},
                     {},
                     {}});
      continue;
    }
    const regression::Metric metric = largest->metric;
    const std::int64_t change = *largest->now - *largest->expected;
    const Ink ink = change < 0 ? Ink::Good : Ink::Bad;
    table.add_row({{printable(verdict.id, 100)},
                   {std::string(row_of(metric).name)},
                   {to_text(metric, *largest->expected)},
                   {to_text(metric, *largest->now)},
                   {change_text(metric, change), ink},
                   {regression::percent_text(*largest->expected, change), ink}});
  }
  std::string text = "\n" + table.draw(style, "--format json");
  if (shown > most_lines)
    text += fmt::format("… and {} more (--format json has all)\n", shown - most_lines);
  return text;
}

std::string place(const regression::CheckReport& report, std::size_t line) {
  return fmt::format("{}:{}", printable(report.path, 200), line);
}

std::string failed_text(const regression::CheckReport& report,
                        const regression::ExperimentVerdict& verdict, const Style& style) {
  std::string text =
      fmt::format("\n{}  ({})\n", style.paint("FAILED " + printable(verdict.id, 100), Ink::Bold),
                  place(report, verdict.findings.front().line));
  for (const regression::Finding& finding : verdict.findings)
    if (!is_in_table(finding)) text += finding.text + "\n";
  for (const std::string& note : verdict.notes) text += note + "\n";
  if (!verdict.metrics.empty()) text += metric_table(verdict, style);
  if (!verdict.cause.empty()) text += "Cause: " + verdict.cause + "\n";
  if (!verdict.time_cause.empty()) text += "Cause: " + verdict.time_cause + "\n";
  return text + peak_text(verdict, style) + time_text(verdict, style);
}

}  // namespace

std::string check_table(const regression::CheckReport& report, const Style& style) {
  std::string text = check_summary(report) + "\n";
  for (const regression::Finding& finding : report.findings)
    text += fmt::format("FAILED {}  ({})\n", finding.text, place(report, finding.line));
  text += overview(report, style);
  std::size_t shown = 0;
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    if (verdict.failed() && ++shown <= most_experiments)
      text += failed_text(report, verdict, style);
  if (shown > most_experiments)
    text += fmt::format("\n… and the details of {} more (--format json has all)\n",
                        shown - most_experiments);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
