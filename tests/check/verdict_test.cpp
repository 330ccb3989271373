// A check fails beyond its tolerances, points at the line, says what grew, and pairs experiments.
#include "analysis/check/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/check/check_example.h"

namespace tidemark::regression::verdict_test {
namespace {

constexpr const char* one = R"({"id": "one", "model": "vit-ti-16"})";
const CheckRules rules{"1.0.0", false};

using Kinds = std::vector<FindingKind>;

Kinds kinds(const std::vector<Finding>& findings) {
  Kinds result;
  for (const Finding& finding : findings) result.push_back(finding.kind);
  return result;
}

/// The verdict on `now` of a file that expects `before`.
ExperimentVerdict judge(const std::string& experiment, const ExperimentOutcome& before,
                        const ExperimentOutcome& now) {
  const CheckFile file = expecting(check_file(experiment), {before});
  return compare_with_baseline(file, {now}, rules).experiments.at(0);
}

ExperimentOutcome with_value(Metric metric, std::int64_t value) {
  ExperimentOutcome outcome = small_outcome();
  outcome.values[index(metric)] = value;
  return outcome;
}

TEST(Verdict, OnTheSameNumbersIsThatTheyAreAsExpected) {
  const ExperimentVerdict verdict = judge(one, small_outcome(), small_outcome());
  EXPECT_FALSE(verdict.failed());
  EXPECT_TRUE(verdict.is_compared);
  EXPECT_EQ(verdict.metrics.size(), metrics.size());
  EXPECT_TRUE(verdict.changes.empty());
}

TEST(Verdict, FailsForOneByteInEitherDirection) {
  for (const MetricRow& row : metrics) {
    const std::int64_t usual = *small_outcome().values[index(row.value)];
    const auto more = judge(one, small_outcome(), with_value(row.value, usual + 1));
    EXPECT_EQ(kinds(more.findings), Kinds{FindingKind::Grew}) << row.name;
    const auto less = judge(one, small_outcome(), with_value(row.value, usual - 1));
    EXPECT_EQ(kinds(less.findings), Kinds{FindingKind::Shrank}) << row.name;
  }
}

TEST(Verdict, AllowsWhatTheToleranceAllowsAndNoMore) {
  const std::string experiment =
      R"({"id": "one", "model": "vit-ti-16", "tolerance": {"live": "1%", "step": 10}})";
  const auto passes = [&](Metric metric, std::int64_t value) {
    return !judge(experiment, small_outcome(), with_value(metric, value)).failed();
  };
  EXPECT_TRUE(passes(Metric::Live, 1010));
  EXPECT_TRUE(passes(Metric::Live, 990));
  EXPECT_FALSE(passes(Metric::Live, 1011));
  EXPECT_FALSE(passes(Metric::Live, 989));
  EXPECT_TRUE(passes(Metric::Step, 5010));
  EXPECT_FALSE(passes(Metric::Step, 5011));
}

TEST(Verdict, LeavesOutNumbersThatAreNotChecked) {
  const ExperimentVerdict verdict =
      judge(R"({"id": "one", "model": "vit-ti-16", "metrics": ["live"]})", small_outcome(),
            with_value(Metric::Step, 1));
  EXPECT_FALSE(verdict.failed());
  EXPECT_FALSE(verdict.metrics[index(Metric::Step)].is_checked);
}

TEST(Verdict, PointsAtTheLineOfTheNumber) {
  const CheckFile file = expecting(check_file(one), {small_outcome()});
  const ExperimentOutcome now = with_value(Metric::Live, 1001);
  const Finding finding = compare_with_baseline(file, {now}, rules).experiments[0].findings[0];
  const std::size_t place = file.text.find("\"values\"");
  const auto line = 1 + std::count(file.text.begin(),
                                   file.text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
  EXPECT_EQ(finding.line, static_cast<std::size_t>(line));
}

TEST(Verdict, SaysWhatGrewAndWhichDecisionDidIt) {
  ExperimentOutcome before = small_outcome(), now = small_outcome();
  before.peak[0].decision = "recompute";
  now.peak[0].bytes = Bytes{900};
  now.values[index(Metric::Live)] = 1200;
  const ExperimentVerdict verdict = judge(one, before, now);
  ASSERT_EQ(verdict.changes.size(), 1u);
  EXPECT_EQ(verdict.cause,
            "at the peak, backward of blocks.1.mlp.gelu: of +200 B, +200 B blocks.*.mlp.gelu "
            "(activation of "
            "gelu; 2 tensors; was recompute, is keep (kept))");
}

TEST(Verdict, SaysThatOnlyThePackingDiffers) {
  EXPECT_EQ(judge(one, small_outcome(), with_value(Metric::Planned, 1)).cause,
            "the live peak is the same; tensors pack differently into the arena");
  EXPECT_EQ(judge(one, small_outcome(), with_value(Metric::Reserved, 1)).cause,
            "the live peak is the same; the allocator rounds, splits or caches differently");
  EXPECT_EQ(judge(one, small_outcome(), with_value(Metric::Step, 1)).cause,
            "the live peak is the same; only the time changed");
}

TEST(Verdict, OnAnotherModelFailsWhereNothingMayDiffer) {
  ExperimentOutcome now = small_outcome();
  now.trace = "00000000000000bb";
  EXPECT_EQ(kinds(judge(one, small_outcome(), now).findings), Kinds{FindingKind::ModelChanged});
}

TEST(Verdict, OnAnotherModelIsANoteWhereAToleranceAllowsForChange) {
  ExperimentOutcome now = with_value(Metric::Live, 1009);
  now.trace = "00000000000000bb";
  const std::string loose = R"({"id": "one", "model": "vit-ti-16", "tolerance": {"live": "1%"}})";
  const ExperimentVerdict verdict = judge(loose, small_outcome(), now);
  EXPECT_FALSE(verdict.failed());
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(verdict.notes[0],
            "the model changed: as many parameters, blocks and ops, but not the same (its trace is "
            "00000000000000bb, expected 00000000000000aa)");
}

TEST(Verdict, RefusesOtherSettingsAndSaysWhich) {
  ExperimentOutcome now = with_value(Metric::Live, 1);
  now.settings = {{"model", "vit-ti-16"}, {"strategy", "mesa"}, {"batch", "8"}};
  const ExperimentVerdict verdict = judge(one, small_outcome(), now);
  EXPECT_EQ(kinds(verdict.findings), Kinds{FindingKind::NotComparable});
  EXPECT_FALSE(verdict.is_compared);
  EXPECT_EQ(verdict.findings[0].text,
            "not compared, the settings changed: batch not set → 8, strategy vanilla → mesa");
}

ExperimentOutcome of_batch(const std::string& batch, std::int64_t live) {
  ExperimentOutcome outcome = with_value(Metric::Live, live);
  outcome.settings.emplace_back("batch", batch);
  outcome.trace = "trace of " + batch;
  return outcome;
}

// The id tells the batch, so the experiment has another one now; it is not gone.
TEST(Verdict, ComparesAnExperimentWhoseBatchChanged) {
  const CheckFile before =
      expecting(check_file(R"({"model": "vit-ti-16", "batch": 64})"), {of_batch("64", 1000)});
  std::string text = before.text;
  text.replace(text.find("64"), 2, "96");
  const CheckFile now = read_check_file(text, before.path);
  const CheckReport report = compare_with_baseline(now, {of_batch("96", 1500)}, rules);
  ASSERT_EQ(report.experiments.size(), 1u);  // none is gone
  const ExperimentVerdict& verdict = report.experiments[0];
  EXPECT_EQ(verdict.id, "vit-ti-16/b96");
  EXPECT_EQ(verdict.was, "vit-ti-16/b64");
  EXPECT_TRUE(verdict.is_compared);
  EXPECT_EQ(kinds(verdict.findings), (Kinds{FindingKind::StepChanged, FindingKind::Grew}));
  EXPECT_EQ(verdict.findings[0].text, "the step changed: batch 64 → 96 (it was vit-ti-16/b64)");
}

TEST(Verdict, ComparesWithTheBatchOfBeforeUnderANameOfItsOwn) {
  const ExperimentVerdict verdict = judge(one, of_batch("64", 1000), of_batch("96", 1500));
  EXPECT_EQ(kinds(verdict.findings), (Kinds{FindingKind::StepChanged, FindingKind::Grew}));
  EXPECT_EQ(verdict.findings[0].text, "the step changed: batch 64 → 96");
}

// Two batches for two others: the first with the first. A strategy is no size: it stays new.
TEST(Verdict, PairsWhatDiffersInSizesOnlyInTheOrderOfTheList) {
  const auto outcome = [](const std::string& batch, const std::string& strategy) {
    ExperimentOutcome made = of_batch(batch, 1000);
    made.settings[1] = {"strategy", strategy};
    return made;
  };
  const CheckFile before =
      expecting(check_file(R"({"id": "a", "model": "m/"}, {"id": "b", "model": "m/"})"),
                {outcome("8", "vanilla"), outcome("16", "vanilla")});
  std::string text = before.text;
  text.replace(text.find("{\"id\": \"a\""), 10,
               R"({"id": "z", "model": "m/"}, {"id": "y", "model": "m/"}, {"id": "x")");
  text.replace(text.find("{\"id\": \"b\", \"model\": \"m/\"}"), 26,
               R"({"id": "w", "model": "m/"})");
  const CheckReport report =
      compare_with_baseline(read_check_file(text, before.path),
                            {outcome("12", "mesa"), outcome("12", "vanilla"),
                             outcome("24", "vanilla"), outcome("32", "vanilla")},
                            rules);
  ASSERT_EQ(report.experiments.size(), 4u);
  EXPECT_EQ(report.experiments[0].was, "");
  EXPECT_EQ(kinds(report.experiments[0].findings), Kinds{FindingKind::NewExperiment});
  EXPECT_EQ(report.experiments[1].was, "a");
  EXPECT_EQ(report.experiments[2].was, "b");
  EXPECT_EQ(kinds(report.experiments[3].findings), Kinds{FindingKind::NewExperiment});
}

// Two blocks become three: what the third one brings stands under its name, and the others, which
// did not change, are not told.
TEST(Verdict, NamesTheNewBlockOfADeeperModel) {
  ExperimentOutcome before = small_outcome();
  before.model = {100, 2, 20, {"blocks.0-1"}};
  ExperimentOutcome now = before;
  now.trace = "00000000000000bb";
  now.model = {150, 3, 30, {"blocks.0-2"}};
  now.blocks = {"blocks.0", "blocks.1", "blocks.2"};
  now.peak[0].tensors = 3;
  now.peak[0].bytes = Bytes{1050};
  now.peak[0].blocks = {{0, 2, 1, Bytes{350}}};
  now.values[index(Metric::Live)] = 1350;
  const ExperimentVerdict verdict = judge(one, before, now);
  EXPECT_EQ(verdict.cause,
            "at the peak, backward of blocks.1.mlp.gelu: of +350 B, [NEW] +350 B blocks.2 (new "
            "block; 1 tensor)");
  EXPECT_EQ(verdict.changes.size(), 1u);
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[1].text,
            "the model changed: 100 → 150 parameters, 2 → 3 blocks, 20 → 30 ops (new: blocks.2) "
            "(its trace is 00000000000000bb, expected 00000000000000aa)");
}

TEST(Verdict, OnAnExperimentThatCannotBeRunLeavesTheOthersAlone) {
  const CheckFile file = expecting(
      check_file(R"({"id": "one", "model": "vit-ti-16"}, {"id": "two", "model": "vit-ti-16"})"),
      {small_outcome(), small_outcome()});
  ExperimentOutcome broken;
  broken.defect = "tidemark.json: /experiments/0: no such model";
  const CheckReport report = compare_with_baseline(file, {broken, small_outcome()}, rules);
  EXPECT_EQ(kinds(report.experiments[0].findings), Kinds{FindingKind::CannotRun});
  EXPECT_EQ(report.experiments[0].findings[0].text, "cannot be run: /experiments/0: no such model");
  EXPECT_FALSE(report.experiments[1].failed());
  EXPECT_EQ(report.defects(), 1u);
}

TEST(Verdict, NoticesAStrategyThatCeasesToApply) {
  ExperimentOutcome refused = small_outcome();
  refused.values = {};
  refused.refusal = "no blocks";
  EXPECT_EQ(kinds(judge(one, small_outcome(), refused).findings), Kinds{FindingKind::Applies});
  EXPECT_EQ(kinds(judge(one, refused, small_outcome()).findings), Kinds{FindingKind::Applies});
  EXPECT_FALSE(judge(one, refused, refused).failed());
}

TEST(Verdict, NoticesANumberThatIsNotMeasuredAnyMore) {
  ExperimentOutcome now = small_outcome();
  now.values[index(Metric::Reserved)].reset();
  EXPECT_EQ(kinds(judge(one, small_outcome(), now).findings), Kinds{FindingKind::NotMeasured});
  EXPECT_EQ(kinds(judge(one, now, small_outcome()).findings), Kinds{FindingKind::NewExperiment});
}

TEST(Verdict, HoldsTheBudgetWhateverTheBaselineSays) {
  ExperimentOutcome now = small_outcome();
  now.fits = false;
  now.available = Bytes{900};
  now.short_by = Bytes{300};
  const std::string experiment = R"({"id": "one", "model": "vit-ti-16",
      "budget": "900B"})";
  const ExperimentVerdict verdict = judge(experiment, now, now);
  ASSERT_EQ(kinds(verdict.findings), Kinds{FindingKind::DoesNotFit});
  EXPECT_EQ(verdict.findings[0].text, "does not fit in 900 B: 300 B short");
  EXPECT_EQ(verdict.findings[0].line, 6u);  // of "budget"
}

TEST(Verdict, SaysWhatTheBudgetIsLessAndWhyItDoesNotFit) {
  ExperimentOutcome now = small_outcome();
  now.fits = false;
  now.available = Bytes{900};
  const std::string experiment = R"({"id": "one", "model": "vit-ti-16", "budget": "1000B")";
  EXPECT_EQ(judge(experiment + "}", now, now).findings.at(0).text,
            "does not fit in 900 B: fragmentation keeps it out");
  EXPECT_EQ(judge(experiment + R"(, "reserve": "10%"})", now, now).findings.at(0).text,
            "does not fit in 900 B, the budget less a reserve of 10 %: fragmentation keeps it out");
}

constexpr const char* pair = R"({"id": "a", "model": "vit-ti-16"}, {"id": "b", "model": "gpt2"})";

TEST(Report, WithoutABaselineFailsOnceUnlessNewIsAllowed) {
  const CheckFile file = check_file(pair);
  const std::vector<ExperimentOutcome> outcomes(2, small_outcome());
  const CheckReport report = compare_with_baseline(file, outcomes, rules);
  EXPECT_EQ(kinds(report.findings), Kinds{FindingKind::NewExperiment});
  EXPECT_EQ(report.failures(), 0u);
  EXPECT_TRUE(report.failed());
  EXPECT_FALSE(compare_with_baseline(file, outcomes, {"1.0.0", true}).failed());
}

TEST(Report, OfAnotherVersionOrOtherAllocatorRulesComparesNothing) {
  const CheckFile file = check_file(pair);
  const std::vector<ExperimentOutcome> outcomes(2, small_outcome());
  Baseline baseline = baseline_of(file, outcomes, "0.9.0");
  baseline.allocator_rules = "pytorch-1.7";
  const CheckFile old = read_check_file(with_baseline(file, baseline), "f");
  const CheckReport report = compare_with_baseline(old, outcomes, rules);
  ASSERT_EQ(kinds(report.findings),
            (Kinds{FindingKind::NotComparable, FindingKind::NotComparable}));
  EXPECT_NE(report.findings[0].text.find("0.9.0 wrote the baseline and this is 1.0.0"),
            std::string::npos);
  EXPECT_NE(report.findings[1].text.find("pytorch-1.7 and this is pytorch-2.6"), std::string::npos);
  EXPECT_EQ(report.compared(), 0u);
  EXPECT_EQ(report.expected_tidemark, "0.9.0");
}

TEST(Report, NamesNewAndGoneExperiments) {
  const CheckFile before = expecting(check_file(pair), {small_outcome(), small_outcome()});
  // The same baseline behind another list of experiments.
  std::string text = before.text;
  text.replace(text.find("\"id\": \"b\""), 9, "\"id\": \"c\"");
  const CheckFile now = read_check_file(text, "f");
  const std::vector<ExperimentOutcome> outcomes(2, small_outcome());
  const CheckReport report = compare_with_baseline(now, outcomes, rules);
  ASSERT_EQ(report.experiments.size(), 3u);
  EXPECT_FALSE(report.experiments[0].failed());
  EXPECT_EQ(kinds(report.experiments[1].findings), Kinds{FindingKind::NewExperiment});
  EXPECT_EQ(report.experiments[2].id, "b");
  EXPECT_EQ(kinds(report.experiments[2].findings), Kinds{FindingKind::GoneExperiment});
  const CheckReport lenient = compare_with_baseline(now, outcomes, {"1.0.0", true});
  EXPECT_EQ(lenient.failures(), 1u);  // what is gone is not new
}

TEST(FindingRows, HaveASentenceEach) {
  for (const FindingRow& row : finding_rows) EXPECT_TRUE(row.help.ends_with('.')) << row.name;
}

}  // namespace
}  // namespace tidemark::regression::verdict_test
