// What a check says to people and to CI systems, from a report made by hand: counts, the table of
// numbers, annotations, test cases and results, each to the letter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/check_print.h"
#include "tests/cli/occurrences.h"

namespace tidemark::cli::check_printed_test {
namespace {

using regression::CheckReport;
using regression::ExperimentVerdict;
using regression::FindingKind;
using regression::Metric;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

constexpr std::int64_t mib = 1 << 20;
const Style wide = {.width = 120};

/// Live bytes grew from 100 to 150 MiB; the step is a quarter shorter, which is not checked.
ExperimentVerdict grown(const char* id) {
  ExperimentVerdict verdict;
  verdict.id = id;
  verdict.line = 7;
  verdict.is_compared = true;
  verdict.findings = {{FindingKind::Grew, "live grew", 9}};
  verdict.metrics = {{Metric::Live, 100 * mib, 150 * mib, {mib, 0}, true, true},
                     {Metric::Step, 4'000'000, 3'000'000, {}, false, false}};
  return verdict;
}

ExperimentVerdict refused(const char* id) {
  ExperimentVerdict verdict;
  verdict.id = id;
  verdict.findings = {{FindingKind::CannotRun, "no such model", 4}};
  return verdict;
}

CheckReport report_of(std::vector<ExperimentVerdict> experiments) {
  CheckReport report;
  report.path = "./ci/tidemark.json";
  report.tidemark = "1.2.0";
  report.experiments = std::move(experiments);
  return report;
}

CheckReport without_baseline() {
  CheckReport report = report_of({ExperimentVerdict()});
  report.findings = {{FindingKind::NotComparable, "it is of other rules", 3}};
  return report;
}

TEST(CheckSummary, CountsWhatIsAsExpected) {
  EXPECT_EQ(check_summary(report_of({})), "./ci/tidemark.json: 0 experiments, all as expected");
  EXPECT_EQ(check_summary(report_of({ExperimentVerdict()})),
            "./ci/tidemark.json: 1 experiment, all as expected");
  EXPECT_EQ(check_summary(report_of({ExperimentVerdict(), grown("a"), ExperimentVerdict()})),
            "./ci/tidemark.json: 3 experiments, 2 as expected, 1 not");
  EXPECT_EQ(check_summary(without_baseline()), "./ci/tidemark.json: 1 experiment, not compared");
}

TEST(UpdateCommand, IsQuotedForAShell) {
  CheckReport report = report_of({});
  EXPECT_EQ(update_command(report), "tidemark check ./ci/tidemark.json --update");
  report.path = "my checks/a.json";
  EXPECT_EQ(update_command(report), "tidemark check 'my checks/a.json' --update");
}

TEST(PathInRepository, HasNoDotsInFront) {
  EXPECT_EQ(path_in_repository(report_of({})), "ci/tidemark.json");
}

TEST(FindingsText, HasALineForEachThingToKnow) {
  ExperimentVerdict verdict = grown("a");
  verdict.findings.push_back({FindingKind::DoesNotFit, "it exceeds 1 GiB", 8});
  verdict.cause = "gelu is kept";
  verdict.time_cause = "gelu runs twice";
  verdict.notes = {"made by 1.1.0"};
  EXPECT_EQ(findings_text(verdict),
            "live grew\nit exceeds 1 GiB\ncause: gelu is kept\ncause: gelu runs twice\n"
            "made by 1.1.0");
}

// As shares: 50 of 100 MiB are more than 90 of 200; what is within its tolerance does not count,
// nor what is not known on both sides.
TEST(LargestChange, IsThatOfTheLargestShare) {
  ExperimentVerdict verdict = grown("a");
  verdict.metrics.push_back({Metric::Reserved, 200 * mib, 290 * mib, {}, true, true});
  EXPECT_EQ(largest_change(verdict)->metric, Metric::Live);
  verdict.metrics.push_back({Metric::Planned, 100 * mib, 40 * mib, {}, true, true});
  EXPECT_EQ(largest_change(verdict)->metric, Metric::Planned);  // smaller is a change, too
  verdict.metrics.push_back({Metric::Allocated, 100 * mib, 900 * mib, {}, true, false});
  EXPECT_EQ(largest_change(verdict)->metric, Metric::Planned);
  verdict.metrics = {{Metric::Live, {}, 5, {}, true, true}, {Metric::Live, 5, {}, {}, true, true}};
  EXPECT_EQ(largest_change(verdict), nullptr);
}

TEST(CheckFindings, OfNumbersAreInTheTable) {
  for (const regression::FindingRow& row : regression::finding_rows)
    EXPECT_EQ(is_in_table({row.value, ""}),
              row.value == FindingKind::Grew || row.value == FindingKind::Shrank)
        << row.name;
}

// --- tables -------------------------------------------------------------------------------------

TEST(CheckTable, HasTheNumbersOfWhatFailed) {
  ExperimentVerdict verdict = grown("small");
  verdict.cause = "gelu is kept";
  verdict.notes = {"made by 1.1.0"};
  EXPECT_EQ(check_table(report_of({ExperimentVerdict(), verdict}), wide),
            R"(./ci/tidemark.json: 2 experiments, 1 as expected, 1 not

FAILED small  (./ci/tidemark.json:9)
made by 1.1.0
number  expected      now     change              tolerance
live     100 MiB  150 MiB  +50.0 MiB  +50.00 %     1.00 MiB
step     4.00 ms  3.00 ms   −1.00 ms  −25.00 %  not checked
Cause: gelu is kept
)");
}

TEST(CheckTable, SaysWhatIsWrongWithTheBaseline) {
  EXPECT_EQ(check_table(without_baseline(), wide),
            "./ci/tidemark.json: 1 experiment, not compared\n"
            "FAILED it is of other rules  (./ci/tidemark.json:3)\n");
}

TEST(CheckTable, HasOneLineWhereThereIsNothingToCompare) {
  ExperimentVerdict fresh = grown("new");
  fresh.findings = {{FindingKind::NewExperiment, "it is new", 5}};
  for (regression::MetricVerdict& metric : fresh.metrics) metric.expected.reset();
  EXPECT_THAT(check_table(report_of({fresh}), wide),
              EndsWith("(./ci/tidemark.json:5)\nit is new\nnow: live 150 MiB · step 3.00 ms\n"));
  ExperimentVerdict same = grown("same");
  for (regression::MetricVerdict& metric : same.metrics) metric.now = metric.expected;
  EXPECT_THAT(check_table(report_of({same}), wide), EndsWith("\nno number changed\n"));
}

// Of several, the largest change of each comes first: that is what one looks for.
TEST(CheckTable, BeginsWithAnOverviewOfSeveral) {
  const std::string text =
      check_table(report_of({grown("a"), refused("b"), ExperimentVerdict()}), wide);
  EXPECT_THAT(text, StartsWith(R"(./ci/tidemark.json: 3 experiments, 1 as expected, 2 not

not as expected  largest change  expected      now     change
a                live             100 MiB  150 MiB  +50.0 MiB  +50.00 %
b                cannot-run

FAILED a  (./ci/tidemark.json:9)
)"));
  EXPECT_THAT(text, EndsWith("\nFAILED b  (./ci/tidemark.json:4)\nno such model\n"));
  EXPECT_THAT(check_table(report_of({grown("a")}), wide), Not(HasSubstr("largest change")));
}

// Five in full, twenty in a line.
TEST(CheckTable, CountsWhatItLeavesOut) {
  const auto text = [](std::size_t count) {
    return check_table(report_of(std::vector(count, grown("a"))), wide);
  };
  EXPECT_EQ(occurrences(text(5), "FAILED"), 5u);
  EXPECT_THAT(text(5), Not(HasSubstr("…")));
  EXPECT_EQ(occurrences(text(6), "FAILED"), 5u);
  EXPECT_THAT(text(6), EndsWith("\n… and the details of 1 more (--format json has all)\n"));
  EXPECT_EQ(occurrences(text(20), "\na  "), 20u);
  EXPECT_EQ(occurrences(text(21), "\na  "), 20u);
  EXPECT_THAT(text(21), HasSubstr("\n… and 1 more (--format json has all)\n"));
}

TEST(CheckTable, PaintsWhatGrewAndWhatShrank) {
  ExperimentVerdict verdict = grown("a");
  verdict.metrics[1].is_outside = true;
  const std::string text = check_table(report_of({verdict}), {.color = true, .width = 120});
  EXPECT_THAT(text, AllOf(HasSubstr("\x1b[31m+50.0 MiB\x1b[0m"), HasSubstr("\x1b[32m−25.00 %"),
                          HasSubstr("\x1b[1mFAILED a\x1b[0m")));
}

// --- CI systems ---------------------------------------------------------------------------------

TEST(GithubAnnotations, StandAtTheLineOfTheFinding) {
  EXPECT_EQ(check_github(report_of({grown("50%, a:b")})),
            "::error file=ci/tidemark.json,line=9,title=Memory of 50%25%2C a%3Ab::live grew\n"
            "tidemark: ./ci/tidemark.json: 1 experiment, 0 as expected, 1 not\n");
  EXPECT_THAT(check_github(without_baseline()),
              StartsWith("::error file=ci/tidemark.json,line=3,title=tidemark check::it is of "
                         "other rules\ntidemark: "));
}

// In a message only percent signs and line ends would be misread.
TEST(GithubAnnotations, EscapeMessagesAsTheRunnerReadsThem) {
  ExperimentVerdict verdict = grown("a");
  verdict.findings[0].text = "live: 5%, more\r";
  verdict.cause = "gelu";
  EXPECT_THAT(check_github(report_of({verdict})),
              HasSubstr("::live: 5%25, more%0D%0Acause: gelu\n"));
}

// Ten are shown: the tenth says how many more there are, if there are.
TEST(GithubAnnotations, AreTenAtMost) {
  const std::string ten = check_github(report_of(std::vector(10, grown("a"))));
  EXPECT_EQ(occurrences(ten, "::error "), 10u);
  EXPECT_THAT(ten, Not(HasSubstr(" more that")));
  const std::string eleven = check_github(report_of(std::vector(11, grown("a"))));
  EXPECT_EQ(occurrences(eleven, "::error "), 10u);
  EXPECT_THAT(eleven, HasSubstr("::and 2 more that are not as expected: the log of this step "
                                "lists them\ntidemark: Memory of a: live grew\ntidemark: Memory"));
  EXPECT_EQ(occurrences(eleven, "\ntidemark: Memory of a: live grew\n"), 2u);
}

TEST(JunitCases, HaveTheFailureAndTheNumbers) {
  ExperimentVerdict verdict = grown("a<b");
  verdict.metrics[1].now.reset();
  verdict.time_cause = "gelu runs twice";
  const std::string text = check_junit(report_of({ExperimentVerdict(), verdict}));
  EXPECT_THAT(text, HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\">\n"));
  EXPECT_THAT(text, HasSubstr("    <testcase classname=\"./ci/tidemark.json\" name=\"\"/>\n"));
  EXPECT_THAT(
      text, HasSubstr("name=\"a&lt;b\">\n"
                      "      <failure type=\"grew\" message=\"live grew\">live grew\n"
                      "cause: gelu runs twice</failure>\n"
                      "      <system-out>live: 157286400 B, expected 104857600\n"
                      "step: not measured ns, expected 4000000\n</system-out>\n    </testcase>\n"));
  verdict.cause = "gelu is kept";
  EXPECT_THAT(check_junit(report_of({verdict})), HasSubstr("message=\"live grew; gelu is kept\""));
}

TEST(JunitCases, HaveOneOfTheBaseline) {
  EXPECT_THAT(
      check_junit(without_baseline()),
      AllOf(HasSubstr("tests=\"2\" failures=\"1\""),
            HasSubstr("name=\"baseline\">\n      <failure type=\"not-comparable\" "
                      "message=\"it is of other rules\">it is of other rules\n</failure>")));
}

TEST(JunitCases, HaveNoCharactersThatXmlHasNot) {
  EXPECT_THAT(check_junit(report_of({grown("a\x01\x1f\x7f\"&>\xff")})),
              HasSubstr("name=\"a???&quot;&amp;&gt;\xEF\xBF\xBD\""));
}

TEST(SarifResults, HaveRuleLineAndCause) {
  ExperimentVerdict verdict = grown("a");
  verdict.findings.push_back({FindingKind::DoesNotFit, "it exceeds 1 GiB", 8});
  verdict.cause = "gelu is kept";
  CheckReport report = report_of({verdict});
  report.path = "/a b/ü.json";
  const Json run = Json::parse(check_sarif(report)).at("runs").at(0);
  EXPECT_EQ(run.at("tool").at("driver").at("version"), "1.2.0");
  const Json& results = run.at("results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.at(0).at("message").at("text"), "a: live grew; gelu is kept");
  EXPECT_EQ(results.at(1).at("message").at("text"), "a: it exceeds 1 GiB");
  const Json& rules = run.at("tool").at("driver").at("rules");
  for (const Json& result : results)
    EXPECT_EQ(rules.at(result.at("ruleIndex").get<std::size_t>()).at("id"), result.at("ruleId"));
  const Json& place = results.at(1).at("locations").at(0).at("physicalLocation");
  EXPECT_EQ(place.at("artifactLocation").at("uri"), "file:///a%20b/%C3%BC.json");
  EXPECT_EQ(place.at("region").at("startLine"), 8);
}

// A finding is the same one wherever it stands and however much it is about.
TEST(SarifResults, KeepTheirFingerprintWhenLinesAndNumbersMove) {
  const auto print_of = [](const char* id, const char* text, std::size_t line) {
    ExperimentVerdict verdict = grown(id);
    verdict.findings = {{FindingKind::Grew, text, line}};
    return Json::parse(check_sarif(report_of({verdict})))
        .at("runs")
        .at(0)
        .at("results")
        .at(0)
        .at("partialFingerprints")
        .at("tidemark/v1");
  };
  EXPECT_EQ(print_of("a", "live grew by 5", 9), print_of("a", "live grew by 6", 12));
  EXPECT_NE(print_of("a", "live grew by 5", 9), print_of("b", "live grew by 5", 9));
  EXPECT_NE(print_of("a", "live grew by 5", 9), print_of("a", "planned grew by 5", 9));
}

TEST(Dashboards, GetTheNumbersThatAreKnown) {
  ExperimentVerdict verdict = grown("a");
  verdict.metrics.push_back({Metric::Reserved, 5, {}, {}, true, true});
  verdict.metrics[1].expected.reset();
  EXPECT_EQ(Json::parse(check_bmf(report_of({verdict}))),
            Json::parse(R"({"a": {"live": {"value": 157286400}, "latency": {"value": 3000000}}})"));
  EXPECT_EQ(Json::parse(check_smaller_is_better(report_of({verdict}))), Json::parse(R"([
      {"name": "a: live", "unit": "B", "value": 157286400, "range": "± 1048576",
       "extra": "expected 104857600"},
      {"name": "a: step", "unit": "ns", "value": 3000000}])"));
}

}  // namespace
}  // namespace tidemark::cli::check_printed_test
