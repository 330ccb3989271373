// The last lines of a sweep: what fits of each strategy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_comparison.h"
#include "cli/reports/sweep_groups.h"

namespace tidemark::cli::sweep_summary_test {
namespace {

using testing::ElementsAre;

Comparison point(std::int64_t batch, const char* device,
                 std::vector<std::pair<const char*, bool>> rows) {
  Comparison comparison;
  comparison.scenario.step.batch = batch;
  comparison.scenario.device.name = device;
  for (const auto& [strategy, fits] : rows) {
    Report& row = comparison.rows.emplace_back();
    row.strategy = strategy;
    row.fits = fits;
  }
  return comparison;
}

TEST(SweepSummary, SaysUpToWhichBatchEachStrategyFits) {
  const std::vector<Comparison> points = {point(8, "t4", {{"vanilla", true}, {"mesa", true}}),
                                          point(16, "t4", {{"vanilla", true}, {"mesa", true}}),
                                          point(32, "t4", {{"vanilla", false}, {"mesa", true}})};
  EXPECT_THAT(fit_summaries(points),
              ElementsAre("vanilla fits to batch 16", "mesa fits to batch 32, the largest asked"));
}

TEST(SweepSummary, SaysOnceWhatHoldsOnAllDevices) {
  const std::vector<Comparison> points = {
      point(8, "t4", {{"vanilla", true}, {"mesa", true}, {"x", false}}),
      point(16, "t4", {{"vanilla", false}, {"mesa", false}, {"x", false}}),
      point(8, "h100", {{"vanilla", true}, {"mesa", true}, {"x", false}}),
      point(16, "h100", {{"vanilla", false}, {"mesa", true}, {"x", false}})};
  EXPECT_THAT(fit_summaries(points),
              ElementsAre("vanilla fits to batch 8 on both",
                          "mesa fits to batch 8 (t4); to batch 16, the largest asked (h100)",
                          "x fits nowhere"));
}

TEST(SweepSummary, ListsWhatFitsWhereThereAreGaps) {
  const std::vector<Comparison> points = {point(8, "t4", {{"vanilla", true}}),
                                          point(16, "t4", {{"vanilla", false}}),
                                          point(32, "t4", {{"vanilla", true}})};
  EXPECT_THAT(fit_summaries(points), ElementsAre("vanilla fits at batch 8, 32"));
}

// A device is neither larger nor smaller than another.
TEST(SweepSummary, NamesTheDevicesThatItFitsOn) {
  const std::vector<Comparison> points = {
      point(8, "t4", {{"vanilla", false}, {"mesa", true}, {"x", false}}),
      point(8, "a100", {{"vanilla", true}, {"mesa", true}, {"x", false}}),
      point(8, "h100", {{"vanilla", true}, {"mesa", true}, {"x", false}})};
  EXPECT_THAT(fit_summaries(points),
              ElementsAre("vanilla fits on a100, h100", "mesa fits on all", "x fits nowhere"));
}

TEST(BatchesText, ShowsBothNumbersWhereTheyDiffer) {
  Report row;
  EXPECT_EQ(batches_text(row), "");
  row.batches = {.every = 12, .largest = 12};
  EXPECT_EQ(batches_text(row), "12");
  row.batches = {.every = 931, .largest = 973};
  EXPECT_EQ(batches_text(row), "931 (973)");
  row.batches = {.every = 4096, .largest = 20011, .cut_short = true};
  EXPECT_EQ(batches_text(row), "≥ 4096 (20011)");
}

}  // namespace
}  // namespace tidemark::cli::sweep_summary_test
