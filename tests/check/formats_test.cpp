// Every format, judged by a parser that is not ours: validate.py, which knows the rules of each
// format, and xmllint with a schema.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/reports/check_print.h"
#include "tests/check/check_example.h"
#include "tests/cli/program.h"

namespace tidemark::regression::formats_test {

using namespace cli;  // whose printers these are
namespace {

const std::string folder_of_tests = std::string(TIDEMARK_TESTS_DIR) + "/check/";

bool has_program(const std::string& name) {
  return run_command({"/bin/sh", "-c", "command -v " + name}).exit_code == 0;
}

struct Text {
  const char* format;
  std::string text;
};

/// What the judge says about each text: counts, or "broken: …". One process for all: Python takes
/// longer to start than to judge.
std::vector<std::string> judged(const std::vector<Text>& texts) {
  const Folder folder;
  std::vector<std::string> command = {"python3", folder_of_tests + "validate.py"};
  for (const auto& [format, text] : texts) {
    const std::string path = folder / std::to_string(command.size());
    write_text(path, text);
    command.insert(command.end(), {format, path});
  }
  const Outcome outcome = run_command(command);
  EXPECT_EQ(outcome.errors, "");
  std::vector<std::string> lines;
  std::istringstream stream(outcome.output);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_EQ(lines.size(), texts.size());
  lines.resize(texts.size());
  return lines;
}

/// The same for a report in every format.
std::vector<std::string> judged(const CheckReport& report) {
  return judged({{"sarif", check_sarif(report)},
                 {"junit", check_junit(report)},
                 {"github", check_github(report)},
                 {"customSmallerIsBetter", check_smaller_is_better(report)},
                 {"bmf", check_bmf(report)},
                 {"markdown", check_markdown(report)}});
}

using Lines = std::vector<std::string>;

/// Names that every format has to escape in its own way.
constexpr const char* nasty = R"(a<b>&\"c\"|d,e:f::g%h]]>é\u0001\n::error::x `*_[])";  // as JSON

/// Four experiments: fine, larger, with another setting, and new; and one that is gone.
CheckReport mixed_report(const std::string& name = "larger") {
  const std::string before =
      R"({"id": "fine", "model": "gpt2"}, {"id": ")" + name +
      R"(", "model": "gpt2"}, {"id": "other", "model": "gpt2"}, {"id": "gone", "model": "gpt2"})";
  const CheckFile file = expecting(check_file(before), std::vector(4, small_outcome()));
  std::string text = file.text;
  text.replace(text.find("\"id\": \"gone\""), 12, "\"id\": \"new\"");
  ExperimentOutcome larger = small_outcome(), other = small_outcome();
  larger.values = {1500, 1100, 1700, 2048, 4000};
  larger.peak[0].bytes = Bytes{1200};
  other.settings.emplace_back("framework", "paper");
  const CheckFile now = read_check_file(text, "some folder/tidemark.json");
  return compare_with_baseline(now, {small_outcome(), larger, other, small_outcome()},
                               {"1.0.0", false});
}

// The step doubled and the bytes grew by a hundredth: this is a gate for memory.
TEST(LargestChange, IsOneOfMemoryWhereverMemoryChanged) {
  ExperimentVerdict verdict;
  const auto add = [&](Metric metric, std::int64_t expected, std::int64_t now) {
    verdict.metrics.push_back({metric, expected, now, {}, true, true});
  };
  add(Metric::Step, 100, 200);
  EXPECT_EQ(largest_change(verdict)->metric, Metric::Step);  // nothing else changed
  add(Metric::Live, 1000, 1010);
  add(Metric::Reserved, 1000, 980);
  EXPECT_EQ(largest_change(verdict)->metric, Metric::Reserved);
}

class Formats : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_program("python3")) GTEST_SKIP() << "python3 is not installed";
  }
};

TEST_F(Formats, OfAMixedReportAreSound) {
  // Four experiments have numbers now: three times the usual ones, and those of the larger.
  const std::int64_t sum =
      3 * (1000 + 1100 + 1200 + 2048 + 5000) + 1500 + 1100 + 1700 + 2048 + 4000;
  const std::string entries = "entries=20 sum=" + std::to_string(sum);
  EXPECT_EQ(judged(mixed_report()),
            (Lines{"results=6 rules=gone-experiment,grew,new-experiment,not-comparable,shrank "
                   "lines=29,29,29,37,5,49",
                   "tests=5 failures=4", "annotations=4 lines=29,37,5,49", entries, entries,
                   "tables=4 headings=5"}));
}

// Another name changes nothing of what a parser finds.
TEST_F(Formats, OfNastyNamesAreSound) {
  EXPECT_EQ(judged(mixed_report(nasty)), judged(mixed_report()));
}

TEST_F(Formats, OfAReportWithoutABaselineAreSound) {
  const CheckReport report =
      compare_with_baseline(check_file(R"({"model": "gpt2"})"), {small_outcome()}, {"1", false});
  EXPECT_EQ(judged(report), (Lines{"results=1 rules=new-experiment lines=4", "tests=2 failures=1",
                                   "annotations=1 lines=4", "entries=5 sum=10348",
                                   "entries=5 sum=10348", "tables=0 headings=1"}));
}

TEST_F(Formats, OfAReportThatPassesAreSound) {
  const CheckFile file = expecting(check_file(R"({"model": "gpt2"})"), {small_outcome()});
  const CheckReport report = compare_with_baseline(file, {small_outcome()}, {"1.0.0", false});
  EXPECT_EQ(judged(report), (Lines{"results=0 rules= lines=", "tests=1 failures=0",
                                   "annotations=0 lines=", "entries=5 sum=10348",
                                   "entries=5 sum=10348", "tables=0 headings=1"}));
  EXPECT_EQ(check_github(report), "tidemark: tidemark.json: 1 experiment, all as expected\n");
}

/// A report in which all of `count` experiments grew.
CheckReport many_failures(std::size_t count) {
  std::string experiments;
  for (std::size_t i = 0; i < count; ++i)
    experiments += fmt::format(R"({}{{"id": "e{}", "model": "gpt2"}})", i == 0 ? "" : ", ", i);
  const CheckFile file = expecting(check_file(experiments), std::vector(count, small_outcome()));
  ExperimentOutcome larger = small_outcome();
  larger.values[0] = 1500;
  return compare_with_baseline(file, std::vector(count, larger), {"1.0.0", false});
}

// GitHub drops what is beyond ten in silence; we say how many there are, and list them in the log.
TEST_F(Formats, AnnounceWhatTheyLeaveOut) {
  const std::string github = check_github(many_failures(30));
  const std::string markdown = check_markdown(many_failures(300));
  const Lines lines = judged(
      {{"github", check_github(many_failures(10))}, {"github", github}, {"markdown", markdown}});
  EXPECT_TRUE(lines[0].starts_with("annotations=10 "));
  EXPECT_TRUE(lines[1].starts_with("annotations=10 "));
  EXPECT_EQ(lines[2], "tables=100 headings=101");
  EXPECT_NE(github.find("and 21 more"), std::string::npos);
  EXPECT_NE(github.find("\ntidemark: Memory of e29: live grew"), std::string::npos);
  EXPECT_NE(markdown.find("and 200 more"), std::string::npos);
  const std::string table = check_table(many_failures(300), {});
  EXPECT_NE(table.find("and 280 more"), std::string::npos);
}

// The title is what a reviewer sees of it: memory wherever memory changed.
TEST(Github, TitlesSayWhatChanged) {
  const CheckFile file =
      expecting(check_file(R"({"id": "e", "model": "gpt2"})"), {small_outcome()});
  ExperimentOutcome slower = small_outcome();
  slower.values[index(Metric::Step)] = 8000;
  const auto text = [&](const ExperimentOutcome& outcome) {
    return check_github(compare_with_baseline(file, {outcome}, {"1.0.0", false}));
  };
  EXPECT_NE(text(slower).find("title=Step time of e::"), std::string::npos) << text(slower);
  slower.values[index(Metric::Live)] = 1500;
  EXPECT_NE(text(slower).find("title=Memory of e::"), std::string::npos) << text(slower);
}

TEST(Junit, FollowsItsSchema) {
  if (!has_program("xmllint")) GTEST_SKIP() << "xmllint is not installed";
  const Folder folder;
  for (const std::string& name : {std::string("larger"), std::string(nasty)}) {
    write_text(folder / "junit.xml", check_junit(mixed_report(name)));
    const Outcome outcome = run_command(
        {"xmllint", "--noout", "--schema", folder_of_tests + "junit.xsd", folder / "junit.xml"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
}

// A judge that accepts everything judges nothing.
TEST_F(Formats, AreJudgedStrictly) {
  const std::string sarif = check_sarif(mixed_report());
  const std::string junit = check_junit(mixed_report());
  const std::string github = check_github(mixed_report());
  const auto with = [](std::string text, const std::string& part, const std::string& by) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
    return text.replace(text.find(part), part.size(), by);
  };
  for (const std::string& line :
       judged({{"sarif", with(sarif, "2.1.0\"", "2.0.0\"")},
               {"sarif", with(sarif, "startLine", "line")},
               {"sarif", with(sarif, "some%20folder", "some folder")},
               {"sarif", with(sarif, "\"ruleIndex\": 0", "\"ruleIndex\": 1")},
               {"junit", with(junit, "tests=\"5\"", "tests=\"4\"")},
               {"junit", with(junit, "</failure>", "<failure>")},
               {"github", with(github, ",line=", ",lime=")},
               {"github", with(github, "%25", "%")},
               {"bmf", R"({"a": {"Live Bytes": {"value": 1}}})"},
               {"bmf", R"({"a": {"live": {"value": 1.5}}})"},
               {"customSmallerIsBetter", R"([{"name": "a", "value": 1}])"},
               {"customSmallerIsBetter", "[NaN]"},
               {"markdown", "| a | b |\n| --- |\n"}}))
    EXPECT_TRUE(line.starts_with("broken: ")) << line;
}

// Live bytes grew and so did the step, each for its own reason.
TEST(Sarif, HasTheCauseOfMemoryBesideMemoryAndThatOfTimeBesideTime) {
  CheckReport report = mixed_report();
  ExperimentVerdict& verdict = report.experiments[1];
  verdict.findings = {{FindingKind::Grew, "live 2 B", 1}, {FindingKind::Grew, "step 2 ns", 1}};
  verdict.cause = "a larger tensor", verdict.time_cause = "a slower kernel";
  const std::string sarif = check_sarif(report);
  EXPECT_NE(sarif.find("live 2 B; a larger tensor\""), std::string::npos) << sarif;
  EXPECT_NE(sarif.find("step 2 ns; a slower kernel\""), std::string::npos) << sarif;
}

TEST(Table, ShowsWhatGrewAndWhere) {
  const std::string text = check_table(mixed_report(), {});
  for (const char* part :
       {"5 experiments, 1 as expected, 4 not", "FAILED larger  (some folder/tidemark.json:29)",
        "+500 B  +50.00 %", "At the peak, backward of blocks.1.mlp.gelu:", "blocks.*.mlp.gelu",
        "framework not set → paper", "FAILED gone", "the baseline does not know it"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Table, HasNoOtherThanAsciiCharactersWhereTheLocaleHasNone) {
  const std::string text = check_table(mixed_report(), {.unicode = false});
  for (const char c : text) EXPECT_GE(c, 0);
  EXPECT_EQ(text.find('?'), std::string::npos) << text;
}

}  // namespace
}  // namespace tidemark::regression::formats_test
