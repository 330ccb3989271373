// What a report says about a peak and a step that changed, in the formats that tell it group by
// group: a row for each kind of change, and what is left out of long lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/check_print.h"

namespace tidemark::regression::changes_printed_test {

using namespace cli;  // whose printers these are
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t mib = 1 << 20;

PeakGroup group(const char* role, std::int64_t tensors, std::int64_t bytes, const char* decision) {
  return {.role = role,
          .contents = "activation",
          .op = "gelu",
          .decision = decision,
          .tensors = tensors,
          .bytes = {bytes},
          .reason = "asked for"};
}

// One group of each kind: larger, new, gone, and known only as one of the small ones.
std::vector<PeakChange> changed_groups() {
  return {
      {.before = group("blocks.*.gelu", 12, 20 * mib, "recompute"),
       .now = group("blocks.*.gelu", 12, 60 * mib, "keep")},
      {.before = {}, .now = group("head", 1, 30 * mib, "keep"), .is_new = true},
      {.before = group("blocks.*.fc1", 12, 15 * mib, "keep"),
       .now = group("blocks.*.fc1", 0, 0, "keep"),
       .is_gone = true},
      {.before = group("", 0, 2 * mib, ""), .now = group("", 3, 12 * mib, ""), .is_bound = true}};
}

std::vector<TimeChange> changed_times() {
  const auto us = [](std::int64_t n) { return Nanoseconds(1000 * n); };
  return {{.before = {"backward", "linear", 0, 48, us(400)},
           .now = {"backward", "linear", 1, 48, us(700)}},
          {.before = {}, .now = {"recompute", "gelu", 0, 12, us(90)}, .is_new = true},
          {.before = {"forward", "add", 0, 24, us(80)},
           .now = {"forward", "add", 0, 0, us(0)},
           .is_gone = true},
          {.before = {"optimizer", "", 0, 0, us(10)},
           .now = {"optimizer", "", 0, 1, us(30)},
           .is_bound = true}};
}

ExperimentVerdict changed() {
  ExperimentVerdict verdict;
  verdict.id = "small";
  verdict.line = 7;
  verdict.findings = {{FindingKind::Grew, "live is larger", 9}};
  verdict.is_compared = true;
  verdict.metrics = {
      {.metric = Metric::Live,
       .expected = 100 * mib,
       .now = 165 * mib,
       .tolerance = {},
       .is_outside = true},
      {.metric = Metric::Step, .expected = 1'000'000, .now = 1'340'000, .tolerance = {}}};
  verdict.peak_before = "backward of fc1";
  verdict.peak_now = "backward of gelu";
  verdict.changes = changed_groups();
  verdict.rest.before.bytes = {40 * mib};
  verdict.rest.now.bytes = {50 * mib};
  verdict.cause = "blocks.*.gelu: keep instead of recompute";
  verdict.time_changes = changed_times();
  verdict.time_rest.before.time = Nanoseconds(5000);
  verdict.time_rest.now.time = Nanoseconds(6000);
  verdict.time_cause = "backward of linear takes longer";
  return verdict;
}

CheckReport report_of(ExperimentVerdict verdict) {
  CheckReport report;
  report.path = "tidemark.json";
  report.experiments.push_back(std::move(verdict));
  return report;
}

std::string table_of(ExperimentVerdict verdict) {
  return check_table(report_of(std::move(verdict)), {.unicode = true, .width = 120});
}

TEST(PrintedChanges, StandInTheTableWithAWordForEachKind) {
  const std::string text = table_of(changed());
  EXPECT_THAT(text, HasSubstr("\nAt the peak, once backward of fc1, now backward of gelu:\n"));
  EXPECT_THAT(text, HasSubstr("+40.0 MiB"));
  EXPECT_THAT(text, HasSubstr("recompute → keep"));
  EXPECT_THAT(text, HasSubstr("[NEW] +30.0 MiB"));
  EXPECT_THAT(text, HasSubstr("[GONE] −15.0 MiB"));
  EXPECT_THAT(text, HasSubstr("at least +10.0 MiB  unknown"));
  EXPECT_THAT(text, HasSubstr("scratch memory"));
  EXPECT_THAT(text, HasSubstr("All groups that the baseline keeps as one (those \"at least\" among "
                              "them): 40.0 MiB → 50.0 MiB\n"));
  EXPECT_THAT(text, HasSubstr("\nIn the step:\n"));
  EXPECT_THAT(text, HasSubstr("[NEW] +90.0 µs"));
  EXPECT_THAT(text, HasSubstr("[GONE] −80.0 µs"));
  EXPECT_THAT(text, HasSubstr("24 → 0"));
  EXPECT_THAT(text, HasSubstr("at least +20.0 µs  unknown"));
}

TEST(PrintedChanges, InTheTableNameOnePeakOnce) {
  ExperimentVerdict verdict = changed();
  verdict.peak_before = verdict.peak_now;
  verdict.changes.pop_back();
  verdict.rest.now = verdict.rest.before;
  const std::string text = table_of(verdict);
  EXPECT_THAT(text, HasSubstr("\nAt the peak, backward of gelu:\n"));
  EXPECT_THAT(text, Not(HasSubstr("baseline keeps as one")));
}

// Of 18 rows the table shows eight groups and four times, Markdown twelve of each; what the others
// change together is said.
TEST(PrintedChanges, BeyondTheLargestAreSummedUp) {
  ExperimentVerdict verdict = changed();
  for (int i = 0; i < 14; ++i) {
    verdict.changes.push_back(changed_groups()[1]);
    verdict.time_changes.push_back(changed_times()[1]);
  }
  const std::string table = table_of(verdict), markdown = check_markdown(report_of(verdict));
  EXPECT_THAT(table, HasSubstr("… and 10 more, +300 MiB together (--format json has all)\n"));
  EXPECT_THAT(table, HasSubstr("… and 14 more, +1.26 ms together (--format json has all)\n"));
  EXPECT_THAT(markdown, HasSubstr("\n… and 6 more (the JSON report has all)\n\nAll groups that"));
  EXPECT_THAT(markdown, HasSubstr("\n… and 6 more (the JSON report has all)\n\nIf this is meant"));
}

TEST(PrintedChanges, StandInMarkdownAsTwoTables) {
  EXPECT_THAT(check_markdown(report_of(changed())), HasSubstr(R"(
At the peak, backward of gelu:

| change | before | now | tensors | what | contents | decision |
| --: | --: | --: | --: | --- | --- | --- |
| +40.0 MiB | 20.0 MiB | 60.0 MiB | 12 | `blocks.*.gelu` | activation | keep |
| **NEW** +30.0 MiB | 0 B | 30.0 MiB | 1 | `head` | activation | keep |
| **GONE** −15.0 MiB | 15.0 MiB | 0 B | 0 | `blocks.*.fc1` | activation | keep |
| at least +10.0 MiB | unknown | 12.0 MiB | 3 | scratch memory | activation |  |

All groups that the baseline keeps as one: 40.0 MiB → 50.0 MiB

In the step:

| change | before | now | runs | what runs | stream |
| --: | --: | --: | --: | --- | --: |
| +300 µs | 400 µs | 700 µs | 48 | backward of linear | 1 |
| **NEW** +90.0 µs | 0 ns | 90.0 µs | 12 | recompute of gelu | 0 |
| **GONE** −80.0 µs | 80.0 µs | 0 ns | 0 | forward of add | 0 |
| at least +20.0 µs | unknown | 30.0 µs | 1 | optimizer | 0 |
)"));
}

TEST(PrintedChanges, AreExactInJson) {
  const Json json = Json::parse(check_json(report_of(changed())));
  const Json& peak = json.at("experiments").at(0).at("peak");
  EXPECT_EQ(peak.at("before_at"), "backward of fc1");
  EXPECT_EQ(peak.at("now_at"), "backward of gelu");
  EXPECT_EQ(peak.at("others_before_bytes"), 40 * mib);
  EXPECT_EQ(peak.at("others_now_bytes"), 50 * mib);
  EXPECT_EQ(peak.at("changes").at(0), Json::parse(R"({"role": "blocks.*.gelu",
      "contents": "activation", "op": "gelu", "change_bytes": 41943040,
      "new": false, "gone": false, "before_is_at_most": false,
      "before": {"tensors": 12, "bytes": 20971520, "decision": "recompute", "reason": "asked for"},
      "now": {"tensors": 12, "bytes": 62914560, "decision": "keep", "reason": "asked for"}})"));
  const auto kinds = [](const Json& changes) {
    std::string text;
    for (const Json& change : changes)
      text += change.at("new")                 ? 'n'
              : change.at("gone")              ? 'g'
              : change.at("before_is_at_most") ? 'b'
                                               : '.';
    return text;
  };
  EXPECT_EQ(kinds(peak.at("changes")), ".ngb");
  const Json& time = json.at("experiments").at(0).at("time");
  EXPECT_EQ(kinds(time.at("changes")), ".ngb");
  EXPECT_EQ(time.at("others_before_ns"), 5000);
  EXPECT_EQ(time.at("others_now_ns"), 6000);
  EXPECT_EQ(time.at("changes").at(0), Json::parse(R"({"task": "backward", "op": "linear",
      "stream": 1, "change_ns": 300000, "new": false, "gone": false, "before_is_at_most": false,
      "before": {"runs": 48, "ns": 400000}, "now": {"runs": 48, "ns": 700000}})"));
}

// A number that did not change has no story.
TEST(PrintedChanges, AreNothingInJsonWhereNothingWasCompared) {
  ExperimentVerdict verdict = changed();
  verdict.time_cause = "";
  verdict.is_compared = false;
  const Json json = Json::parse(check_json(report_of(verdict)));
  EXPECT_EQ(json.at("experiments").at(0).at("peak"), nullptr);
  EXPECT_EQ(json.at("experiments").at(0).at("time"), nullptr);
}

TEST(PrintedChanges, AreNumbersForBenchmarkSites) {
  EXPECT_EQ(
      Json::parse(check_bmf(report_of(changed()))),
      Json::parse(R"({"small": {"live": {"value": 173015040}, "latency": {"value": 1340000}}})"));
  const Json smaller = Json::parse(check_smaller_is_better(report_of(changed())));
  EXPECT_EQ(smaller.at(0), Json::parse(R"({"name": "small: live", "unit": "B",
      "value": 173015040, "range": "± 0", "extra": "expected 104857600"})"));
}

TEST(PrintedChanges, EscapeWhatMarkdownWouldRead) {
  ExperimentVerdict verdict = changed();
  verdict.cause = "<b> & `c` *d* [e]";
  verdict.changes[0].now.role = "a`b";
  const std::string markdown = check_markdown(report_of(verdict));
  EXPECT_THAT(markdown, HasSubstr("* **cause**: &lt;b> &amp; \\`c\\` \\*d\\* \\[e\\]\n"));
  EXPECT_THAT(markdown, HasSubstr("| `a'b` |"));
}

TEST(Print, TakesTheFormatByItsName) {
  const CheckReport report = report_of(changed());
  const Style style;
  EXPECT_EQ(print(report, CheckFormat::Bmf, style), check_bmf(report));
  EXPECT_EQ(print(report, CheckFormat::SmallerIsBetter, style), check_smaller_is_better(report));
  EXPECT_EQ(print(report, CheckFormat::Junit, style), check_junit(report));
  EXPECT_EQ(print(report, CheckFormat::Sarif, style), check_sarif(report));
  EXPECT_EQ(print(report, CheckFormat::Github, style), check_github(report));
  EXPECT_EQ(print(report, CheckFormat::Markdown, style), check_markdown(report));
  EXPECT_EQ(print(report, CheckFormat::Json, style), check_json(report));
  EXPECT_EQ(print(report, CheckFormat::Table, style), check_table(report, style));
}

}  // namespace
}  // namespace tidemark::regression::changes_printed_test
