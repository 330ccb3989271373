// What is concluded from rows, said only where it is more than noise.
#include "analysis/conclusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "traces/presets.h"

namespace tidemark::conclusion_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using namespace literals;

constexpr Bytes capacity = 16_GiB;

Report row(const char* strategy, Bytes allocated, std::int64_t milliseconds) {
  Report report;
  report.strategy = strategy;
  report.allocated_peak = allocated;
  report.step = std::chrono::milliseconds(milliseconds);
  report.time_ratio = static_cast<double>(milliseconds) / 100;
  report.fits = allocated <= capacity;
  if (!report.fits) report.short_by = allocated - capacity;
  return report;
}

Conclusion concluded(const std::vector<Report>& rows) {
  Device device;
  device.title = "NVIDIA T4";
  return conclude(rows, device, capacity);
}

std::string said(const std::vector<Report>& rows) { return to_text(concluded(rows)); }

TEST(Conclusion, NamesTheFastestAndTheSmallest) {
  EXPECT_EQ(said({row("vanilla", 12_GiB, 100), row("checkpoint", 4_GiB, 130)}),
            "Vanilla fits (12.0 GiB of 16.0 GiB) and is the fastest; checkpoint needs least, 4.00 "
            "GiB, for 30.0 % more time.");
  EXPECT_EQ(said({row("vanilla", 20_GiB, 100), row("checkpoint", 4_GiB, 130)}),
            "Vanilla is 4.00 GiB short; checkpoint is the fastest that fits (4.00 GiB of 16.0 GiB, "
            "for 30.0 % more time).");
}

TEST(Conclusion, OneRowIsComparedWithNothing) {
  EXPECT_EQ(said({row("vanilla", 12_GiB, 100)}), "Vanilla fits (12.0 GiB of 16.0 GiB).");
  EXPECT_EQ(said({row("vanilla", 20_GiB, 100)}),
            "Vanilla does not fit in 16.0 GiB (NVIDIA T4): it is 4.00 GiB short.");
}

TEST(Conclusion, TiesAreTies) {
  const Bytes hardly_less = 20_GiB - Bytes{1'000'000};
  EXPECT_EQ(said({row("vanilla", 20_GiB, 100), row("ms-bp", hardly_less, 101)}),
            "Nothing fits in 16.0 GiB (NVIDIA T4), and no strategy needs less than another: 4.00 "
            "GiB short.");
  EXPECT_EQ(said({row("vanilla", 30_GiB, 100), row("a", 20_GiB, 101), row("b", hardly_less, 102)}),
            "Nothing fits in 16.0 GiB (NVIDIA T4): a and b come nearest and are 4.00 GiB short.");
  EXPECT_THAT(said({row("vanilla", 12_GiB, 100), row("a", 4_GiB, 100)}),
              HasSubstr("Vanilla fits (12.0 GiB of 16.0 GiB) and nothing is faster"));
  EXPECT_THAT(said({row("vanilla", 12_GiB, 100), row("a", 12_GiB, 120)}),
              HasSubstr("; no strategy needs less"));
}

// Of those that need least the fastest is named first, and the price is its.
TEST(Conclusion, OfThoseThatNeedLeastTheCheapestHasThePrice) {
  const Report vanilla = row("vanilla", 12_GiB, 100);
  const Report slow = row("slow", 4_GiB, 130), quick = row("quick", 4_GiB, 110);
  EXPECT_THAT(said({vanilla, slow, quick}),
              EndsWith("; quick and slow need least, 4.00 GiB, for 10.0 % more time with quick."));
  EXPECT_THAT(said({vanilla, row("early", 4_GiB, 110), quick}),
              EndsWith("; early and quick need least, 4.00 GiB, for 10.0 % more time."));
  EXPECT_THAT(said({vanilla, slow, row("free", 4_GiB, 100)}),
              EndsWith(" and nothing is faster; free and slow need least, 4.00 GiB, at no cost in "
                       "time with free."));
}

TEST(Conclusion, SaysWhatMakesAPeakThatNoStrategyLowers) {
  std::vector<Report> rows = {row("vanilla", 20_GiB, 100), row("checkpoint", 20_GiB, 130)};
  rows[0].peak_maker = rows[1].peak_maker = PeakMaker::OptimizerStep;
  EXPECT_THAT(said(rows), HasSubstr("The optimizer step makes the peak of vanilla"));
  rows[0].peak_maker = rows[1].peak_maker = PeakMaker::Loss;
  EXPECT_THAT(said(rows), HasSubstr("The logits and their loss make the peak of vanilla"));
  rows[1].allocated_peak = 4_GiB, rows[1].fits = true;
  EXPECT_THAT(said(rows), Not(HasSubstr("make the peak")));  // checkpoint lowers it
}

TEST(Conclusion, SaysWhatFragmentationKeepsOutAndItsCure) {
  Report fragmented = row("checkpoint", 15_GiB, 100);
  fragmented.fits = false;
  EXPECT_THAT(said({fragmented}), HasSubstr("it is kept out by fragmentation."));
  fragmented.fits_expandable = true;
  EXPECT_THAT(said({fragmented}),
              HasSubstr("fragmentation, and fits with --alloc-conf expandable_segments:True."));
}

// 6.7 B parameters in bf16 with AdamW: weights, gradients, two moments, and one temporary of the
// size of all parameters, whatever is done about activations.
TEST(Conclusion, NamesOptionsThatWereTriedForAnOptimizerStep) {
  Scenario scenario;
  scenario.model = find_model("llama-7b");
  scenario.step.precision = Precision::Bf16;
  scenario.step.sequence = 512;
  scenario.device = find_device("rtx-4090");
  scenario.strategies = {parse_strategy("vanilla"), parse_strategy("checkpoint")};
  const Conclusion conclusion = compare(scenario).conclusion;
  EXPECT_EQ(conclusion.maker, PeakMaker::OptimizerStep);
  ASSERT_EQ(conclusion.remedies.size(), 4u);
  for (const Remedy& remedy : conclusion.remedies)
    EXPECT_LT(remedy.allocated, conclusion.smallest->allocated) << remedy.option;
  EXPECT_THAT(to_text(conclusion), HasSubstr("no strategy needs less than another"));
  EXPECT_THAT(to_text(conclusion), HasSubstr("--optimizer adamw-8bit would need"));
  EXPECT_THAT(to_text(conclusion), HasSubstr("--optimizer-form fused would need"));
}

TEST(Conclusion, NamesLossesInPartsThatWereTriedForLogits) {
  Scenario scenario;
  scenario.model = find_model("gpt2");
  scenario.step.batch = 32;
  scenario.step.precision = Precision::AmpBf16;
  scenario.device = find_device("rtx-4090");
  scenario.budget = 8_GiB;
  scenario.strategies = {parse_strategy("checkpoint")};
  const Conclusion conclusion = compare(scenario).conclusion;
  EXPECT_EQ(conclusion.maker, PeakMaker::Loss);
  EXPECT_THAT(to_text(conclusion), HasSubstr("--loss chunked:8 would need"));
  EXPECT_THAT(to_text(conclusion), HasSubstr("--loss fused-linear would need"));
  scenario.step.loss = parse_token_loss("chunked:2");
  EXPECT_TRUE(compare(scenario).conclusion.remedies.empty());
}

}  // namespace
}  // namespace tidemark::conclusion_test
