// The sentences and numbers that stand around a comparison's table: what fits, what helps, and how
// model, step and device are described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_comparison.h"
#include "cli/text/units_text.h"

namespace tidemark::cli::comparison_text_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace literals;

Report row(const char* strategy) {
  Report row;
  row.strategy = strategy;
  return row;
}

Comparison comparison_of(std::vector<Report> rows) {
  Comparison comparison;
  comparison.rows = std::move(rows);
  return comparison;
}

TEST(NotesOnAComparison, AreNoneWhereNothingIsFragmented) {
  Report even = row("vanilla");
  even.batches = {.every = 12, .largest = 12};
  EXPECT_THAT(notes_on(comparison_of({even, row("mesa")})), IsEmpty());
}

TEST(NotesOnAComparison, SayWhatExpandableSegmentsCure) {
  Report cured = row("vanilla"), also = row("mesa"), hopeless = row("checkpoint");
  cured.fits_expandable = also.fits_expandable = true;
  hopeless.fits_expandable = false;
  EXPECT_THAT(
      notes_on(comparison_of({cured, hopeless, also})),
      ElementsAre("fragmented: with --alloc-conf expandable_segments:True fits: vanilla, mesa",
                  "fragmented, with --alloc-conf expandable_segments:True as well: checkpoint"));
}

TEST(NotesOnAComparison, LeaveOutWhatDoesNotApply) {
  Report absent = row("reversible");
  absent.applies = false;
  absent.fits_expandable = true;
  EXPECT_THAT(notes_on(comparison_of({absent})), IsEmpty());
}

TEST(NotesOnAComparison, ExplainUnevenBatchesAndTheirCure) {
  Report uneven = row("vanilla"), even = row("mesa");
  uneven.batches = {.every = 10, .largest = 12};
  uneven.expandable_batches = {.every = 13, .largest = 13};
  even.batches = {.every = 20, .largest = 20};
  even.expandable_batches = {.every = 21, .largest = 21};
  EXPECT_THAT(notes_on(comparison_of({uneven, even})),
              ElementsAre(HasSubstr("in brackets the largest that fits at all"),
                          "with --alloc-conf expandable_segments:True every batch fits up to: "
                          "vanilla 13, mesa 21"));
  EXPECT_THAT(notes_on(comparison_of({even})), IsEmpty());  // a cure without an illness
}

TEST(NotesOnAComparison, SayWhereNotAllBatchesWereTried) {
  Report cut = row("vanilla"), cured = row("mesa");
  cut.batches = {.every = 4096, .largest = 4096, .cut_short = true};
  cured.batches = {.every = 7, .largest = 7};
  cured.expandable_batches = {.every = 4096, .largest = 4096, .cut_short = true};
  EXPECT_THAT(notes_on(comparison_of({cut, cured, row("checkpoint")})),
              ElementsAre("max batch: only 4096 batches were tried one by one: vanilla, mesa"));
}

TEST(FitsText, SaysHowMuchIsShortOrThatPiecesAreTooSmall) {
  Report report = row("vanilla");
  report.short_by = 3_GiB;
  EXPECT_EQ(fits_text(report), "no, 3.00 GiB short");
  report.short_by = 0_B;
  EXPECT_EQ(fits_text(report), "no, fragmented");
  report.fits = true;
  EXPECT_EQ(fits_text(report), "yes");
}

TEST(ThroughputText, HasThreeDigitsUnlessMoreAreWhole) {
  Report report;
  const auto text = [&](double rate) { return report.throughput = rate, throughput_text(report); };
  EXPECT_EQ(text(12345.6), "12346");
  EXPECT_EQ(text(100), "100");
  EXPECT_EQ(text(99.94), "99.9");
  EXPECT_EQ(text(10), "10.0");
  EXPECT_EQ(text(9.994), "9.99");
}

TEST(ThroughputTitle, IsOfTheFirstThatApplies) {
  Report absent = row("reversible"), present = row("vanilla");
  absent.applies = false;
  present.throughput_unit = "images";
  EXPECT_EQ(throughput_title(comparison_of({absent, present})), "images/s");
  EXPECT_EQ(throughput_title(comparison_of({absent})), "samples/s");
}

TEST(MfuText, IsEmptyWithoutMatrixProducts) {
  Report report;
  EXPECT_EQ(mfu_text(report), "");
  report.mfu = 0.4136;
  EXPECT_EQ(mfu_text(report), "41.4 %");
}

TEST(RefusalText, LeavesOutTheNameBesideIt) {
  EXPECT_EQ(refusal_text("mesa:released", "mesa: no op saves a float"), "no op saves a float");
  EXPECT_EQ(refusal_text("mesa", "checkpoint: no blocks"), "checkpoint: no blocks");
}

// --- the three lines above a table --------------------------------------------------------------

TEST(DescribeScenario, SaysHowMuchIsTrained) {
  Comparison comparison;
  comparison.scenario.model.title = "ViT";
  comparison.parameters = 86'000'000;
  EXPECT_EQ(describe_scenario(comparison)[0], "ViT: 86.0 M parameters, all trained");
  comparison.scenario.step.tuning = parse_tuning("lora:r=4,targets=qkv");
  comparison.trainable = 147'456;
  EXPECT_EQ(describe_scenario(comparison)[0],
            "ViT: 86.0 M parameters, 147 k trained (lora:r=4,targets=qkv)");
}

TEST(DescribeScenario, SaysWhenThePrecisionIsTheConfigs) {
  Comparison comparison;
  comparison.tokens = 197;
  comparison.scenario.step.batch = 4;
  comparison.scenario.step.precision = Precision::Bf16;
  EXPECT_THAT(describe_scenario(comparison)[1], HasSubstr("batch 4 × 197 tokens · bf16 · "));
  EXPECT_THAT(describe_scenario(comparison)[1], Not(HasSubstr("its config")));
  comparison.scenario.model.precision = Precision::Bf16;
  EXPECT_THAT(describe_scenario(comparison)[1], EndsWith(" · bf16 as its config says"));
}

// A budget that is round in decimal units was typed in them.
TEST(DescribeScenario, SaysABudgetAsItWasTyped) {
  Comparison comparison;
  comparison.scenario.device.title = "GPU";
  comparison.scenario.device.capacity = 24_GiB;
  const auto line = [&](Bytes budget) {
    comparison.scenario.budget = comparison.budget.capacity = budget;
    return describe_scenario(comparison)[2];
  };
  EXPECT_EQ(line({24'000'000'000}), "GPU: 24.0 GiB, a budget of 24 GB = 22.35 GiB for tensors");
  EXPECT_EQ(line({500'000'000}), "GPU: 24.0 GiB, a budget of 500 MB = 476.84 MiB for tensors");
  EXPECT_EQ(line(20_GiB), "GPU: 24.0 GiB, a budget of 20.0 GiB for tensors");
  EXPECT_EQ(line({500'000'001}), "GPU: 24.0 GiB, a budget of 477 MiB for tensors");
  comparison.scenario.budget.reset();
  comparison.budget.allocator.expandable_segments = true;
  EXPECT_EQ(describe_scenario(comparison)[2],
            "GPU: 24.0 GiB, of which 477 MiB for tensors · allocator set by --alloc-conf");
}

// --- numbers ------------------------------------------------------------------------------------

TEST(Units, KeepDigitsUpToTenThousand) {
  EXPECT_EQ(SizeUnit({10 * 1024}).with_unit({10 * 1024}), "10.00 KiB");
  EXPECT_EQ(SizeUnit({10 * 1024 - 1}).with_unit({10 * 1024 - 1}), "10239 B");
  EXPECT_EQ(SizeUnit(100_MiB).with_unit(1_MiB), "1.0 MiB");
  EXPECT_EQ(SizeUnit(1000_MiB).with_unit(1_MiB), "1 MiB");
  EXPECT_EQ(SizeUnit({std::int64_t{10} << 40}).name(), "TiB");
  EXPECT_EQ(TimeUnit(Nanoseconds(9'999)).name(), "ns");
  EXPECT_EQ(TimeUnit(Nanoseconds(10'000)).name(), "µs");
  EXPECT_EQ(TimeUnit(std::chrono::seconds(10)).name(), "s");
}

TEST(Units, WriteNegativeTimesWithAMinusButNoNegativeZero) {
  const TimeUnit unit(std::chrono::milliseconds(20));
  EXPECT_EQ(unit(std::chrono::microseconds(-1500)), "−1.50");
  EXPECT_EQ(unit(Nanoseconds(-1)), "0.00");
}

TEST(FlopText, HasTheLargestUnitOfTenOrMore) {
  EXPECT_EQ(flop_text(5), "5 FLOP");
  EXPECT_EQ(flop_text(26.8e9), "26.80 GFLOP");
  EXPECT_EQ(flop_text(9e12), "9000 GFLOP");
  EXPECT_EQ(flop_text(464.8e6), "464.8 MFLOP");
}

TEST(CountText, ChangesUnitsAtPowersOfAThousand) {
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1.0 k");
  EXPECT_EQ(count_text(100'000), "100 k");
  EXPECT_EQ(count_text(999'499), "999 k");
  EXPECT_EQ(count_text(999'885'952), "1.0 B");
  EXPECT_EQ(count_text(1'000'000'000), "1.0 B");
}

TEST(ChangeText, HasASignOnlyWhereADigitIsLeft) {
  EXPECT_EQ(change_text(1.0006), "+0.1 %");
  EXPECT_EQ(change_text(1.0004), "0.0 %");
  EXPECT_EQ(change_text(2), "+100.0 %");
}

}  // namespace
}  // namespace tidemark::cli::comparison_text_test
