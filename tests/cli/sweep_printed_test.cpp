// A sweep as tables, as Markdown, for programs and as pictures: a matrix of memory and one of rates
// for each group, refusals once, and what follows at each point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/comparison_fields.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "tests/cli/occurrences.h"
#include "tests/cli/small_comparison.h"

namespace tidemark::cli::sweep_printed_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace literals;

const Style wide = {.width = 200};

Comparison point(std::int64_t batch, const char* device) {
  Comparison made = small_comparison();
  made.scenario.step.batch = batch;
  made.scenario.device.name = device;
  made.scenario.device.title = std::string("a ") + device;
  return made;
}

/// Batches 4 and 8 on one device: at 8 twice the memory, checkpoint is 8 MiB short, and what was
/// refused applies.
std::vector<Comparison> two_batches() {
  std::vector<Comparison> points = {point(4, "t4"), point(8, "t4")};
  for (Report& row : points[1].rows) row.allocated_peak = row.allocated_peak + row.allocated_peak;
  points[1].rows[1].fits = false;
  points[1].rows[1].throughput = 99.94;
  points[1].rows[2] = small_row("reversible:a", 30, 50);
  return points;
}

// 80 MiB are the largest, so all are in MiB with two decimals; what does not apply is left blank.
TEST(SweepTable, HasAMatrixOfMemoryAndOneOfRates) {
  const std::string text = sweep_table(two_batches(), wide);
  EXPECT_THAT(text,
              StartsWith("ViT: 86.0 M parameters, all trained\n2 points: batch 4, 8\nfp32 ·"));
  EXPECT_THAT(text, HasSubstr(R"(
All numbers are predicted.

allocated [MiB] by batch (! does not fit)
strategy            4        8
vanilla       40.00 !  80.00 !
checkpoint      20.00  40.00 !
reversible:a             30.00

images/s by batch
strategy        4     8
vanilla       200   200
checkpoint    160  99.9
reversible:a       80.0
)"));
}

TEST(SweepTable, EndsWithRefusalsConclusionsAndWhatFits) {
  const std::vector<Comparison> points = two_batches();
  EXPECT_THAT(
      sweep_table(points, {.width = 1000}),
      EndsWith("\n\nDoes not apply:\n  reversible:a: no coupled blocks\n\nbatch 4: " +
               to_text(points[0].conclusion) + "\nbatch 8: " + to_text(points[1].conclusion) +
               "\n\nvanilla fits nowhere\ncheckpoint fits to batch 4\n"
               "reversible:a fits to batch 8, the largest asked\n"));
}

TEST(SweepTable, SaysEachRefusalOnceAndNoneWhereAllApply) {
  std::vector<Comparison> points = {point(4, "t4"), point(8, "t4")};
  const std::string text = sweep_table(points, wide);
  const std::string refusal = "  reversible:a: no coupled blocks\n";
  EXPECT_EQ(text.find(refusal), text.rfind(refusal));
  EXPECT_THAT(text, HasSubstr("\nDoes not apply:\n" + refusal));
  for (Comparison& each : points) each.rows.pop_back();
  EXPECT_THAT(sweep_table(points, wide), Not(HasSubstr("Does not apply")));
}

// Two devices and two batches: a group for each device, headed by its name.
TEST(SweepTable, HeadsEachGroupWithWhatItsPointsShare) {
  const std::vector<Comparison> points = {point(4, "t4"), point(8, "t4"), point(4, "h100"),
                                          point(8, "h100")};
  EXPECT_THAT(
      sweep_table(points, wide),
      AllOf(HasSubstr("\n4 points: batch 4, 8 × device t4, h100\n"),
            HasSubstr("\nt4: allocated [MiB] by batch (! does not fit)\n"),
            HasSubstr("\nt4: images/s by batch\n"), HasSubstr("\nh100: allocated [MiB] by batch"),
            HasSubstr("\nbatch 8 · h100: ")));
}

// Of many points the last go first, however many there are.
TEST(SweepTable, LosesTheLastPointsOfANarrowTerminal) {
  std::vector<Comparison> points;
  for (std::int64_t batch = 1; batch <= 12; ++batch) points.push_back(point(batch, "t4"));
  EXPECT_THAT(sweep_table(points, {.width = 40}),
              AllOf(HasSubstr("\nstrategy          1        2        3\n"),
                    HasSubstr("\n(left out of 40 columns: 12, 11, 10, 9, 8, 7, 6, 5, 4; --format "
                              "csv has all)\n")));
  EXPECT_THAT(sweep_table(points, {.width = 100}),
              HasSubstr("\n(left out of 100 columns: 12, 11; --format csv has all)\n"));
}

// A conclusion goes on two blanks further right.
TEST(SweepTable, WrapsConclusions) {
  const std::string text = sweep_table(two_batches(), {.width = 60});
  const std::size_t begin = text.find("\nbatch 4: ");
  EXPECT_THAT(text.substr(begin), StartsWith("\nbatch 4: Vanilla is 8.00 MiB short; checkpoint is"
                                             " the\n  fastest that fits (20.0 MiB of 32.0 MiB,"));
}

TEST(SweepTable, PaintsWhatDoesNotFitAndIsAsciiWhereTheTerminalIs) {
  const std::string text = sweep_table(two_batches(), {.color = true, .width = 200});
  EXPECT_THAT(text, AllOf(HasSubstr("\x1b[31m40.00 !\x1b[0m"), HasSubstr("      20.00  "),
                          HasSubstr("\x1b[2m99.9\x1b[0m"), HasSubstr("    160  ")));
  EXPECT_THAT(sweep_table(two_batches(), {.unicode = false, .width = 200}),
              AllOf(Not(HasSubstr("·")), HasSubstr("\nfp32 | ")));
}

TEST(SweepMarkdown, HasTheSameMatrices) {
  const std::vector<Comparison> points = two_batches();
  const std::string text = sweep_markdown(points);
  EXPECT_THAT(text, StartsWith("ViT: 86.0 M parameters, all trained  \n2 points: batch 4, 8  \n"));
  EXPECT_THAT(text, HasSubstr(R"(
All numbers are predicted.

allocated [MiB], ! does not fit

| strategy | batch 4 | batch 8 |
| --- | --: | --: |
| vanilla | 40.00 ! | 80.00 ! |
| checkpoint | 20.00 | 40.00 ! |
| reversible:a |  | 30.00 |

images/s

| strategy | batch 4 | batch 8 |
| --- | --: | --: |
| vanilla | 200 | 200 |
| checkpoint | 160 | 99.9 |
| reversible:a |  | 80.0 |

* batch 4: )"));
  EXPECT_THAT(text, EndsWith("\n* batch 8: " + to_text(points[1].conclusion) +
                             "\n\n* vanilla fits nowhere\n* checkpoint fits to batch 4\n"
                             "* reversible:a fits to batch 8, the largest asked\n"));
}

TEST(SweepJson, HasEachPointAsAComparisonWritesIt) {
  const std::vector<Comparison> points = two_batches();
  const nlohmann::json json = nlohmann::json::parse(sweep_json(points));
  EXPECT_EQ(json.at("format"), "tidemark-sweep-1");
  EXPECT_EQ(json.at("predicted"), true);
  ASSERT_EQ(json.at("points").size(), 2u);
  EXPECT_EQ(json.at("points").at(1), nlohmann::json::parse(comparison_json(points[1])));
}

TEST(SweepCsv, HasWhatWasSweptInFrontOfEachRow) {
  std::vector<Comparison> points = two_batches();
  points[0].scenario.step.sequence = 512;
  points[1].scenario.step.image = 224;
  const std::string text = sweep_csv(points);
  EXPECT_THAT(text, StartsWith("batch,sequence,image,device,strategy,applies,reason,"));
  EXPECT_THAT(text, HasSubstr("\n4,512,,t4,vanilla,true,"));
  EXPECT_THAT(text, HasSubstr("\n4,512,,t4,reversible:a,false,reversible: no coupled blocks,"));
  EXPECT_THAT(text, HasSubstr("\n8,,224,t4,checkpoint,true,"));
  EXPECT_EQ(occurrences(text, "\n"), 7u);
}

// --- pictures -----------------------------------------------------------------------------------

TEST(SweepPictures, AreOneOfMemoryAndOneOfRatesForEachGroup) {
  const std::vector<std::string> one = sweep_svgs(two_batches(), 960);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_THAT(one[0], AllOf(HasSubstr("vit: allocated memory by batch"),
                            HasSubstr("predicted; allocated memory ["), HasSubstr(">batch<")));
  EXPECT_THAT(one[1], AllOf(HasSubstr("vit: images/s by batch"), HasSubstr("predicted; images/s")));
  const std::vector<Comparison> points = {point(4, "t4"), point(8, "t4"), point(4, "h100"),
                                          point(8, "h100")};
  const std::vector<std::string> two = sweep_svgs(points, 960);
  ASSERT_EQ(two.size(), 4u);
  EXPECT_THAT(two[0], HasSubstr("vit · t4: allocated memory by batch"));
  EXPECT_THAT(two[3], HasSubstr("vit · h100: images/s by batch"));
}

// All strategies are in each picture, with a point where they apply.
TEST(SweepPictures, HaveAPointWhereAStrategyApplies) {
  const std::vector<std::string> svgs = sweep_svgs(two_batches(), 960);
  for (const std::string& svg : svgs)
    for (const char* name : {"vanilla", "checkpoint", "reversible:a"})
      EXPECT_THAT(svg, HasSubstr(name));
  EXPECT_EQ(occurrences(svgs[0], "<circle"), 5u);
  EXPECT_EQ(occurrences(svgs[1], "<circle"), 5u);
}

// Room for tensors is a line where all points have the same; rates have none.
TEST(SweepPictures, MarkTheRoomThatAllPointsShare) {
  std::vector<Comparison> points = two_batches();
  EXPECT_THAT(sweep_svgs(points, 960)[0], HasSubstr("32.0 MiB"));
  EXPECT_THAT(sweep_svgs(points, 960)[1], Not(HasSubstr("32.0 MiB")));
  points[1].budget.capacity = 33_MiB;
  EXPECT_THAT(sweep_svgs(points, 960)[0],
              AllOf(Not(HasSubstr("32.0 MiB")), Not(HasSubstr("33.0 MiB"))));
}

// The axes of all groups go as far as the largest of any.
TEST(SweepPictures, ShareTheirAxes) {
  std::vector<Comparison> points = {point(4, "t4"), point(8, "t4"), point(4, "h100"),
                                    point(8, "h100")};
  const std::string before = sweep_svgs(points, 960)[0];
  for (Comparison& each : points) each.budget.capacity = {};
  const std::string alone = sweep_svgs(points, 960)[0];
  points[3].rows[0].allocated_peak = 400_MiB;
  EXPECT_NE(sweep_svgs(points, 960)[0], alone);
  EXPECT_NE(before, alone);
}

}  // namespace
}  // namespace tidemark::cli::sweep_printed_test
