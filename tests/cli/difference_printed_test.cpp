// Why a run needed another amount of memory, from a difference made by hand: each number of the
// table and of the JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_difference.h"
#include "tests/cli/small_comparison.h"

namespace tidemark::cli::difference_printed_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;
using namespace literals;

const Style wide = {.width = 200};

/// 20 MiB more than the 40 predicted: 24 kept from earlier steps, 4 freed earlier.
struct Compared {
  Explanation explanation;
  beside::Difference difference;
  Source source = Source::Measured;

  Compared() {
    explanation.comparison = small_comparison();
    explanation.evaluation.report = explanation.comparison.rows[0];
    difference.predicted = 40_MiB;
    difference.recorded = 60_MiB;
    difference.compared = 50_MiB;
    difference.matched = 30_MiB;
    difference.recorded_blocks = 8;
    difference.matched_blocks = 5;
    difference.causes = {{beside::CauseKind::EarlierSteps,
                          24_MiB,
                          3,
                          {{"fc1", "train.py:7", "hook", 2, 16_MiB}, {"", "", "", 1, 8_MiB}}},
                         {beside::CauseKind::Missing, Bytes{} - 4_MiB, 1, {}}};
  }
  BesideFacts facts() const {
    return {explanation, "run.pickle", "a snapshot", source, difference};
  }
  std::string table(std::size_t top = 9) const { return difference_table(facts(), wide, top); }
  Json json() const { return Json::parse(difference_json(facts())); }
};

TEST(DifferenceTable, SaysWhatWasPredictedAndWhatItIsBeside) {
  const std::string text = Compared().table();
  EXPECT_THAT(text, StartsWith("ViT: 86.0 M parameters, all trained\nbatch 4 × 197 tokens · "));
  EXPECT_THAT(text, HasSubstr("\nvanilla: predicted, fits: no, 8.00 MiB short\n"
                              "Numbers of the recording are measured, all others are predicted.\n\n"
                              "Beside run.pickle: a snapshot\n"));
  Compared predicted;
  predicted.source = Source::Predicted;
  EXPECT_THAT(predicted.table(),
              HasSubstr("\nAll numbers are predicted, those of the recording too.\n\nBeside "));
}

// 60 of 40 MiB are half as much again; 30 of 50 MiB are 60 %.
TEST(DifferenceTable, HasBothPeaksAndHowMuchIsAlike) {
  EXPECT_THAT(Compared().table(),
              HasSubstr("\npredicted 40.00 · recorded 60.00 MiB · difference +20.00 MiB (+50.0 %)\n"
                        "5 of 8 blocks at the moment of the run that is compared are tensors of "
                        "the prediction: 60.0 % of their bytes.\n"));
  Compared less;
  std::swap(less.difference.predicted, less.difference.recorded);
  EXPECT_THAT(less.table(), HasSubstr("\npredicted 60.00 · recorded 40.00 MiB · difference −20.00 "
                                      "MiB (−33.3 %)\n"));
}

// The unit is that of the larger peak, whichever that is.
TEST(DifferenceTable, HasOneUnitForBothPeaks) {
  Compared apart;
  apart.difference.predicted = 5_MiB;
  EXPECT_THAT(apart.table(), HasSubstr("\npredicted 5.00 · recorded 60.00 MiB · "));
  std::swap(apart.difference.predicted, apart.difference.recorded);
  EXPECT_THAT(apart.table(), HasSubstr("\npredicted 60.00 · recorded 5.00 MiB · "));
  apart.difference.recorded = 60_MiB;
  EXPECT_THAT(apart.table(), HasSubstr(" · difference +0.00 MiB (0.0 %)\n"));
}

TEST(DifferenceTable, LosesTheLinesOfCodeBeforeTheStacks) {
  EXPECT_THAT(difference_table(Compared().facts(), {.width = 30}, 9),
              HasSubstr("\n(left out of 30 columns: line, allocated by; --format json has all)\n"));
}

TEST(DifferenceTable, OfNothingDividesByNothing) {
  Compared empty;
  empty.difference = {};
  EXPECT_THAT(empty.table(), Not(HasSubstr("100.0 %")));
  EXPECT_THAT(empty.table(),
              EndsWith("0 of 0 blocks at the moment of the run that is compared are tensors of the "
                       "prediction: 0.0 % of their bytes.\nNothing differs.\n"));
}

// Each cause in a unit of its own: 24 MiB in MiB, 4 in KiB.
TEST(DifferenceTable, ListsTheTensorsOfEachCause) {
  const std::string text = Compared().table();
  EXPECT_THAT(text, EndsWith(R"(
+24.00 MiB: kept from step to step: 3 blocks of earlier steps
   size  blocks  tensor  line        allocated by
    MiB
  16.00       2  fc1     train.py:7  hook
   8.00       1

−4096 KiB: predicted for then, and not there: 1 tensor, freed earlier, recomputed or never made
)"));
  EXPECT_THAT(text, Not(HasSubstr("Nothing differs")));
}

TEST(DifferenceTable, SaysHowManyTensorsItLeavesOut) {
  EXPECT_THAT(Compared().table(1), AllOf(HasSubstr("hook\n  … and 1 more (--top N shows more)\n"),
                                         Not(HasSubstr("  8.00  "))));
  EXPECT_THAT(Compared().table(2), Not(HasSubstr("more (")));
}

TEST(DifferenceTable, IsAsciiWhereTheTerminalIs) {
  const std::string text = difference_table(Compared().facts(), {.unicode = false}, 9);
  EXPECT_THAT(text, AllOf(HasSubstr("\n-4096 KiB: "), Not(HasSubstr("·"))));
}

TEST(DifferenceJson, IsExact) {
  const Json json = Compared().json();
  EXPECT_EQ(json.at("format"), "tidemark-difference-1");
  EXPECT_FALSE(json.contains("predicted"));
  EXPECT_EQ(json.at("strategy"), "vanilla");
  EXPECT_EQ(json.at("recorded"), Json::parse(R"({"file": "run.pickle", "title": "a snapshot",
                                                 "source": "measured"})"));
  EXPECT_EQ(json.at("predicted_peak_bytes"), 40 << 20);
  EXPECT_EQ(json.at("recorded_peak_bytes"), 60 << 20);
  EXPECT_EQ(json.at("difference_bytes"), 20 << 20);
  EXPECT_EQ(json.at("matched"), Json::parse(R"({"blocks": 5, "of_blocks": 8, "bytes": 31457280,
                                                "of_bytes": 52428800})"));
  EXPECT_EQ(json.at("scale"), nullptr);
  ASSERT_EQ(json.at("causes").size(), 2u);
  const Json& cause = json.at("causes").at(0);
  EXPECT_EQ(cause.at("kind"), "earlier_steps");
  EXPECT_EQ(cause.at("text"), "kept from step to step: 3 blocks of earlier steps");
  EXPECT_EQ(cause.at("bytes"), 24 << 20);
  EXPECT_EQ(cause.at("blocks"), 3);
  EXPECT_EQ(cause.at("tensors").at(0),
            Json::parse(R"({"tensor": "fc1", "line": "train.py:7", "allocated_by": "hook",
                            "blocks": 2, "bytes": 16777216})"));
  EXPECT_EQ(json.at("causes").at(1).at("bytes"), -(4 << 20));
}

TEST(DifferenceJson, HasTheFactorWhereThereIsOne) {
  Compared doubled;
  doubled.difference.scale = {.factor = 2};
  EXPECT_EQ(doubled.json().at("scale"), 2.0);
}

}  // namespace
}  // namespace tidemark::cli::difference_printed_test
