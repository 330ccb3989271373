// A baseline is read as written, replaces no byte but its own, and is refused when damaged.
#include "analysis/check/baseline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/check/check_example.h"

namespace tidemark::regression::baseline_test {
namespace {

constexpr const char* two = R"({"model": "vit-ti-16", "batch": [1, 2]})";

TEST(Baseline, IsReadAsItWasWritten) {
  const CheckFile file = check_file(two);
  ExperimentOutcome odd = small_outcome();
  odd.settings.emplace_back("k\"ey", "va\\lue\n");
  odd.peak_at = "backward of \"x\"";
  odd.plan = "af63dc4c8601ec8c";
  const CheckFile read = expecting(file, {small_outcome(), odd});
  ASSERT_TRUE(read.baseline);
  EXPECT_EQ(read.baseline->tidemark, "1.0.0");
  EXPECT_EQ(read.baseline->allocator_rules, allocator_rules);
  ASSERT_EQ(read.baseline->experiments.size(), 2u);
  const Expected& second = read.baseline->experiments[1];
  EXPECT_EQ(second.id, "vit-ti-16/b2");
  EXPECT_EQ(second.settings, odd.settings);
  EXPECT_EQ(second.trace, odd.trace);
  EXPECT_EQ(second.plan, odd.plan);
  EXPECT_EQ(read.baseline->experiments[0].plan, "");
  EXPECT_EQ(second.values, odd.values);
  EXPECT_EQ(second.peak_at, odd.peak_at);
  ASSERT_EQ(second.peak.size(), 2u);
  EXPECT_TRUE(is_same_role(second.peak[0], odd.peak[0]));
  EXPECT_EQ(second.peak[0].bytes, Bytes{700});
  EXPECT_EQ(second.peak[0].decision, "keep");
  EXPECT_EQ(second.other_bytes, Bytes{});
}

TEST(Baseline, KeepsNumbersThatADoubleWouldRound) {
  ExperimentOutcome large = small_outcome();
  large.values[0] = (std::int64_t{1} << 60) - 1;
  const CheckFile read = expecting(check_file(R"({"model": "gpt2"})"), {large});
  EXPECT_EQ(read.baseline->experiments[0].values[0], (std::int64_t{1} << 60) - 1);
}

TEST(Baseline, OfAStrategyThatDoesNotApplyHasNoNumbers) {
  ExperimentOutcome refused;
  refused.settings = {{"model", "x"}};
  refused.refusal = "no op saves a float tensor";
  const CheckFile read = expecting(check_file(R"({"model": "gpt2"})"), {refused});
  EXPECT_EQ(read.baseline->experiments[0].refusal, refused.refusal);
  EXPECT_EQ(read.baseline->experiments[0].values, Values{});
}

TEST(Baseline, AnnouncesTheGroupsThatItDoesNotKeep) {
  const CheckFile file = check_file(R"({"model": "gpt2"})", "  \"peak_groups\": 1,\n");
  const Expected expected = expecting(file, {small_outcome()}).baseline->experiments[0];
  EXPECT_EQ(expected.peak.size(), 1u);
  EXPECT_EQ(expected.other_tensors, 1);
  EXPECT_EQ(expected.other_bytes, Bytes{300});
}

// An update must not touch what people wrote: blanks, order, line ends.
TEST(Baseline, ReplacesItselfAndNoOtherByte) {
  const std::string mine =
      "{ \"format\":\"tidemark-check\",\"version\" : 1,\r\n\n \"experiments\":"
      " [ {\"model\":\"gpt2\" } ]\t}\n\n";
  const CheckFile file = read_check_file(mine, "f");
  const std::string first = with_baseline(file, baseline_of(file, {small_outcome()}, "1"));
  EXPECT_TRUE(first.starts_with(mine.substr(0, mine.find(" ]\t}") + 2))) << first;
  EXPECT_TRUE(first.ends_with("}\n\n"));
  ExperimentOutcome other = small_outcome();
  other.values[0] = 1;
  const CheckFile again = read_check_file(first, "f");
  const std::string second = with_baseline(again, baseline_of(again, {other}, "1"));
  EXPECT_NE(second, first);
  const CheckFile third = read_check_file(second, "f");
  EXPECT_EQ(with_baseline(third, baseline_of(third, {small_outcome()}, "1")), first);
}

TEST(Baseline, StaysWhereItsAuthorMovedIt) {
  const CheckFile file = check_file(R"({"model": "gpt2"})");
  const std::string expected = write_baseline(baseline_of(file, {small_outcome()}, "1"));
  const std::string moved =
      check_text(R"({"model": "gpt2"})", "  \"expected\": " + expected + ",\n");
  const CheckFile again = read_check_file(moved, "f");
  EXPECT_EQ(with_baseline(again, *again.baseline), moved);
}

// Entries of neighbours never share a line, and blank lines keep merges apart.
TEST(Baseline, HasOneGroupOfLinesPerExperiment) {
  const CheckFile file = check_file(two);
  ExperimentOutcome changed = small_outcome();
  changed.values[2] = 1300;
  const auto lines = [&](const std::vector<ExperimentOutcome>& outcomes) {
    std::vector<std::string> result;
    std::string text = write_baseline(baseline_of(file, outcomes, "1"));
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      result.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return result;
  };
  const auto before = lines({small_outcome(), small_outcome()});
  const auto after = lines({changed, small_outcome()});
  ASSERT_EQ(before.size(), after.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < before.size(); ++i) different += before[i] != after[i];
  EXPECT_EQ(different, 1u);
  EXPECT_EQ(std::ranges::count(before, ""), 3);  // around and between two entries
}

struct Damage {
  const char* expected;
  const char* message;
};

class DamagedBaselines : public testing::TestWithParam<Damage> {};

TEST_P(DamagedBaselines, AreRefusedInOneLine) {
  const std::string more = std::string("  \"expected\": ") + GetParam().expected + ",\n";
  try {
    check_file(R"({"model": "gpt2"})", more);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(GetParam().message), std::string::npos) << what;
    EXPECT_EQ(std::ranges::count(what, '\n'), 0);
  }
}

#define ENTRY(text) R"({"tidemark": "1", "allocator_rules": "r", "experiments": [)" text "]}"

INSTANTIATE_TEST_SUITE_P(
    All, DamagedBaselines,
    testing::Values(
        Damage{"7", "/expected: found 7; need an object"},
        Damage{"{}", "/expected: found no key 'tidemark'"},
        Damage{R"({"tidemark": 1})", "/expected/tidemark: found 1; need text"},
        Damage{ENTRY("{}"), "/expected/experiments/0: found no key 'id'"},
        Damage{ENTRY(R"({"id": "a"})"), "found no key 'settings'"},
        Damage{ENTRY(R"({"id": "a", "settings": {"batch": 8}})"), "/settings/batch: found 8"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "value": {}})"), "did you mean 'values'?"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "values": {"live": -1}})"), "/values/live"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "values": {"live": 1.5}})"), "found 1.5"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "values": {"live": 2e18}})"), "need a whole"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "values": {"peak": 1}})"),
               "unknown key 'peak'"},
        Damage{ENTRY(R"({"id": "a", "settings": {}, "peak": [["r", "c"]]})"),
               "/peak/0: need six values"},
        Damage{ENTRY(R"({"id": "a", "settings": {}}, {"id": "a", "settings": {}})"),
               "found the id 'a' twice"}));

TEST(CheckFile, IsRefusedAtEveryByteAtWhichItEnds) {
  const CheckFile file = check_file(two);
  const std::string text =
      with_baseline(file, baseline_of(file, {small_outcome(), small_outcome()}, "1"));
  const std::size_t last = text.find_last_not_of('\n');
  for (std::size_t size = 0; size <= last; ++size)
    EXPECT_THROW(read_check_file(text.substr(0, size), "f"), InputError) << size;
}

TEST(CheckFile, OfAnotherFormatOrVersionIsNamedSo) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      read_check_file(text, "f");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem(R"({"format": "tidemark-trace", "version": 1})"),
            "f: /format: found 'tidemark-trace'; need 'tidemark-check'");
  EXPECT_EQ(problem(R"({"format": "tidemark-check", "version": 2})"),
            "f: /version: found version 2; this tidemark reads version 1 (use a newer one)");
  EXPECT_EQ(problem(R"({"format": "tidemark-check", "version": 0})"),
            "f: /version: found version 0; this tidemark reads version 1 (write the file anew)");
  EXPECT_NE(problem("[]").find("need an object"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::regression::baseline_test
