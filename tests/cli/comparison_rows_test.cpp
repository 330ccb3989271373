// The rows of a comparison for people: which columns there are, what stands in them, the mark of
// the device's room, and what goes first where the terminal is narrow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_comparison.h"
#include "tests/cli/small_comparison.h"

namespace tidemark::cli::comparison_rows_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using namespace literals;

const Style wide = {.width = 200};

std::string rows_of(const Comparison& comparison, const Style& style = wide) {
  return comparison_rows(comparison, style, "csv");
}

// The longest bar is vanilla's 24 characters for 40 MiB: 32 MiB are 19 of them, 20 MiB 12. What is
// zero in all rows (pinned memory, exchange, hidden time) has no column.
TEST(ComparisonRows, AreAllThatAppliesWithTheDevicesRoomMarked) {
  EXPECT_EQ(rows_of(small_comparison()),
            "strategy                              allocated   change  reserved  planned   step   "
            "change  images/s     MFU  recompute  fits\n"
            "                                            MiB                MiB      MiB     ms    "
            "                                ms\n"
            "vanilla     ███████████████████│▒▒▒▒      40.00              48.00    39.00  20.00    "
            "            200  50.0 %             no, 8.00 MiB short\n"
            "checkpoint  ████████████       │          20.00  −50.0 %     24.00    19.00  25.00  "
            "+25.0 %       160  40.0 %       5.00  yes\n"
            "│ marks what the device has room for\n");
}

TEST(ComparisonRows, HaveNoMarkWhereAllBarsEndBelowIt) {
  Comparison roomy = small_comparison();
  roomy.budget.capacity = 40_MiB;
  EXPECT_THAT(rows_of(roomy), Not(HasSubstr("│")));
  roomy.budget.capacity = 40_MiB - 1_B;
  EXPECT_THAT(rows_of(roomy), HasSubstr("│ marks"));
}

TEST(ComparisonRows, HaveAColumnOnlyForWhatAnyRowHas) {
  const Comparison plain = small_comparison();
  for (const char* title : {"host", "rank", "exchange", "exposed", "bubble", "hidden", "max batch"})
    EXPECT_THAT(rows_of(plain), Not(HasSubstr(title))) << title;
  Comparison pinned = plain;
  pinned.rows[1].pinned = 3_MiB;
  EXPECT_THAT(rows_of(pinned), AllOf(HasSubstr("planned  host"), HasSubstr("19.00  3.00")));
  Comparison exchanging = plain;
  exchanging.rows[1].communication = {Nanoseconds{4'000'000}, Nanoseconds{1'500'000}};
  EXPECT_THAT(rows_of(exchanging),
              AllOf(HasSubstr("exchange  exposed  fits"), HasSubstr("0.00     0.00  no"),
                    HasSubstr("4.00     1.50  yes")));
  Comparison hiding = plain;
  hiding.rows[1].recovery.hidden = Nanoseconds{2'000'000};
  EXPECT_THAT(rows_of(hiding), AllOf(HasSubstr("recompute  hidden"), HasSubstr("5.00    2.00")));
}

TEST(ComparisonRows, NameTheRankAndHowLongItWaits) {
  Comparison staged = small_comparison();
  staged.rows[0].rank = RankClass{3};
  staged.rows[0].bubble = Nanoseconds{7'000'000};
  EXPECT_THAT(rows_of(staged), AllOf(HasSubstr("rank  allocated"), HasSubstr("▒▒▒▒  pp3       40"),
                                     HasSubstr("bubble  fits"), HasSubstr("7.00  no, 8")));
}

TEST(ComparisonRows, HaveTheLargestBatchesWhereTheyWereAskedFor) {
  Comparison searched = small_comparison();
  searched.scenario.finds_largest_batch = true;
  searched.rows[0].batches = {.every = 3, .largest = 3};
  searched.rows[1].batches = {.every = 6, .largest = 7};
  EXPECT_THAT(rows_of(searched), AllOf(HasSubstr("fits                max batch\n"),
                                       HasSubstr("no, 8.00 MiB short          3\n"),
                                       HasSubstr("yes                     6 (7)\n"),
                                       HasSubstr("\nmax batch: every ")));
}

TEST(ComparisonRows, StarWhatWaitsForTheHost) {
  Comparison waiting = small_comparison();
  EXPECT_THAT(rows_of(waiting), Not(HasSubstr("*")));
  waiting.rows[1].launch_bound = true;
  EXPECT_THAT(rows_of(waiting), AllOf(HasSubstr(" *25.00"), HasSubstr("  20.00  "),
                                      EndsWith("\n* launch-bound: for more than a tenth of the "
                                               "step, the device waits for the host\n")));
}

TEST(ComparisonRows, ColorWhatGotBetterAndWhatGotWorse) {
  const std::string text = rows_of(small_comparison(), {.color = true, .width = 200});
  EXPECT_THAT(text, AllOf(HasSubstr("\x1b[32m−50.0 %\x1b[0m"), HasSubstr("\x1b[31m+25.0 %\x1b[0m"),
                          HasSubstr("\x1b[31mno, 8.00 MiB short"), HasSubstr("\x1b[32myes"),
                          HasSubstr("\x1b[1mcheckpoint")));
  Comparison same = small_comparison();
  same.rows[1].memory_ratio = 1.0001;  // less than a digit of the table: neither
  EXPECT_THAT(rows_of(same, {.color = true, .width = 200}), HasSubstr("  20.00   0.0 %     24.00"));
}

TEST(ComparisonRows, LoseTheLeastImportantColumnsFirstAndSayWhere) {
  EXPECT_THAT(rows_of(small_comparison(), {.width = 100}),
              EndsWith("\n(left out of 100 columns: recompute, planned, reserved; --format csv has "
                       "all)\n"));
}

// Of columns that matter as much, the one further left goes first.
TEST(ComparisonRows, LoseAllButWhatIsNeededAndHowItFits) {
  Comparison all = small_comparison();
  all.rows[1].pinned = 3_MiB;
  all.rows[1].rank = RankClass{1};
  all.rows[1].recovery.hidden = all.rows[1].bubble = Nanoseconds{2'000'000};
  all.rows[1].communication = {Nanoseconds{4'000'000}, Nanoseconds{1'500'000}};
  EXPECT_THAT(rows_of(all, {.width = 60}),
              EndsWith("\n(left out of 60 columns: hidden, recompute, planned, exchange, reserved, "
                       "bars, host, exposed, MFU, bubble, images/s, change; --format csv has "
                       "all)\n"));
}

// What continues a note is two columns further right, so lines have two less.
TEST(ComparisonRows, WrapTheNotesBelow) {
  Comparison fragmented = small_comparison();
  fragmented.rows[0].fits_expandable = true;
  EXPECT_THAT(rows_of(fragmented, {.width = 61}),
              EndsWith("\nfragmented: with --alloc-conf expandable_segments:True\n"
                       "  fits: vanilla\n"));
  EXPECT_THAT(rows_of(fragmented, {.width = 62}), EndsWith(":True fits:\n  vanilla\n"));
}

TEST(Cautions, AreEachSaidOnceWithAllItsStrategies) {
  Comparison careful = small_comparison();
  EXPECT_EQ(cautions_text(careful, wide), "");
  careful.rows[0].caution = careful.rows[1].caution = "gradients differ";
  careful.rows[2].caution = "not said: it does not apply";
  careful.rows.push_back(small_row("mesa", 10, 30));
  careful.rows[3].caution = "rounds what it keeps to eight bits";
  EXPECT_EQ(cautions_text(careful, wide),
            "\nNot only memory and time:\n"
            "  vanilla, checkpoint: gradients differ\n"
            "  mesa: rounds what it keeps to eight bits\n");
  EXPECT_EQ(cautions_text(careful, {.width = 39}),
            "\nNot only memory and time:\n"
            "  vanilla, checkpoint: gradients differ\n"
            "  mesa: rounds what it keeps to eight\n"
            "    bits\n");
}

}  // namespace
}  // namespace tidemark::cli::comparison_rows_test
