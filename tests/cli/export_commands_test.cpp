// Sweeps, differences and exports, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/recording/recording.h"
#include "tests/cli/program.h"

namespace tidemark::cli::export_commands_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

TEST(SweepCommand, HasAPointForEachCombination) {
  const Outcome outcome = tidemark(
      "compare bert-base -b 1,2 -s 64:128:x2 -d t4,h100 --strategies vanilla --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const Json json = Json::parse(outcome.output);
  EXPECT_EQ(json["format"], "tidemark-sweep-1");
  ASSERT_EQ(json["points"].size(), 8u);
  EXPECT_EQ(json["points"][1]["options"]["batch"], 2);
  EXPECT_EQ(json["points"][2]["options"]["sequence"], 128);
  EXPECT_EQ(json["points"][4]["device"]["name"], "h100");
  const Outcome alone =
      tidemark("compare bert-base -b 2 -s 128 -d h100 --strategies vanilla --format json");
  EXPECT_EQ(json["points"][7], Json::parse(alone.output));
}

TEST(SweepCommand, OfOneValueIsAnOrdinaryComparison) {
  EXPECT_EQ(tidemark("compare vit-ti-16 -b 4:7:x2").output,
            tidemark("compare vit-ti-16 -b 4").output);
}

TEST(SweepCommand, HasALinePerPointAndStrategyInCsv) {
  const Outcome outcome =
      tidemark("compare vit-ti-16 -b 1:4:x2 --strategies vanilla,mesa --format csv");
  EXPECT_THAT(outcome.output, StartsWith("batch,sequence,image,device,strategy,"));
  EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1 + 3 * 2);
}

TEST(SweepCommand, SaysWhatCannotBeSwept) {
  EXPECT_EQ(tidemark("compare vit-ti-16 -b 8:4:x2").exit_code, 2);
  EXPECT_EQ(tidemark("explain vit-ti-16 -b 8,16").exit_code, 2);
  EXPECT_EQ(tidemark("compare vit-ti-16 -d t4,").exit_code, 2);
  EXPECT_THAT(tidemark("compare vit-ti-16 -b 1:9999:1 -d t4,h100").errors,
              HasSubstr("more than 10000 points"));
  EXPECT_EQ(tidemark("compare vit-b-16 -b 1024,2048 --budget 1GiB --strategies vanilla "
                     "--require-fit")
                .exit_code,
            4);
}

TEST(DiffCommand, ComparesTimelinesReportsAndBothTogether) {
  const Folder folder;
  const std::vector<std::string> common = {"explain", "vit-ti-16", "-b", "2"};
  const auto explain = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    const Outcome outcome = tidemark_with(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  };
  explain({"-o", folder / "a.timeline.json"});
  explain({"--strategy", "checkpoint", "-o", folder / "b.timeline.json.zst"});
  explain({"--format", "json", "-o", folder / "a.json"});
  const Outcome timelines = tidemark_with(
      {"diff", folder / "a.timeline.json", folder / "b.timeline.json.zst", "--top", "1"});
  EXPECT_EQ(timelines.exit_code, 0) << timelines.errors;
  EXPECT_THAT(timelines.output,
              StartsWith("before: vit-ti-16 · vanilla · predicted for a100-80gb\n"));
  EXPECT_THAT(timelines.output, HasSubstr("[NEW]  recompute"));
  EXPECT_THAT(timelines.output, HasSubstr(" more (--top N shows more)"));
  const Outcome mixed = tidemark_with({"diff", folder / "a.json", folder / "a.timeline.json"});
  EXPECT_THAT(mixed.output, HasSubstr("Only one of the two says: "));
  EXPECT_EQ(mixed.output.find("[GONE]"), std::string::npos) << mixed.output;
  const Outcome same = tidemark_with({"diff", folder / "a.json", folder / "a.json"});
  EXPECT_THAT(same.output, HasSubstr("No number differs."));
}

TEST(DiffCommand, HasTheSameRowsInJsonAndCsv) {
  const Folder folder;
  for (const char* batch : {"1", "2"})
    tidemark_with({"compare", "vit-ti-16", "-b", batch, "--strategies", "vanilla,mesa", "--format",
                   "json", "-o", folder / batch});
  const auto command = [&](const std::string& format) {
    return tidemark_with({"diff", folder / "1", folder / "2", "--format", format}).output;
  };
  const Json json = Json::parse(command("json"));
  std::size_t rows = 0;
  for (const Json& table : json["tables"])
    for (const Json& row : table["rows"]) {
      ++rows;
      EXPECT_EQ(row["change"],
                row["after"].get<std::int64_t>() - row["before"].get<std::int64_t>());
    }
  EXPECT_GT(rows, 10u);
  EXPECT_EQ(std::ranges::count(command("csv"), '\n'), 1 + static_cast<std::ptrdiff_t>(rows));
  EXPECT_THAT(command("markdown"), HasSubstr("|  | before | after | change |  |"));
}

// The null backend takes the predicted time: both sides of its report are equal.
TEST(DiffCommand, ComparesTheTwoSidesOfAReplay) {
  const Folder folder;
  const auto write = [&](std::vector<std::string> arguments, const std::string& name) {
    arguments.insert(arguments.end(), {"--format", "json", "-o", folder / name});
    const Outcome outcome = tidemark_with(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  };
  write({"replay", "vit-ti-16", "--strategy", "mesa", "--backend", "null"}, "replay.json");
  write({"explain", "vit-ti-16", "--strategy", "mesa"}, "explain.json");
  write({"compare", "vit-ti-16", "--strategies", "mesa,vanilla"}, "compare.json");
  const Outcome sides = tidemark_with({"diff", folder / "replay.json"});
  EXPECT_EQ(sides.exit_code, 0) << sides.errors;
  EXPECT_THAT(sides.output, StartsWith("predicted: vit-ti-16 · mesa · predicted for a100-80gb\n"
                                       "measured:  vit-ti-16 · mesa · measured on null\n"));
  for (const char* other : {"explain.json", "compare.json"}) {
    const Outcome outcome =
        tidemark_with({"diff", folder / other, folder / "replay.json", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    const Json found = Json::parse(outcome.output);
    std::set<std::string> tables;
    for (const Json& table : found["tables"]) tables.insert(table["name"]);
    EXPECT_TRUE(tables.contains("totals") && tables.contains("time")) << other;
  }
  const Outcome alone = tidemark_with({"diff", folder / "explain.json"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.errors, HasSubstr("only a replay's report has two sides"));
}

TEST(DiffCommand, SaysWhatItNeeds) {
  const Folder folder;
  write_text(folder / "x.json", "{\"format\": \"something\"}");
  EXPECT_EQ(tidemark("diff").exit_code, 2);
  EXPECT_EQ(tidemark("diff one.json").exit_code, 1);
  EXPECT_EQ(tidemark("diff no.json such.json").exit_code, 1);
  const Outcome outcome = tidemark_with({"diff", folder / "x.json", folder / "x.json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("is no timeline, no report and no baseline"));
}

TEST(ExplainExport, FollowsTheNameOfTheFile) {
  const Folder folder;
  const auto text_of = [&](const std::string& name) {
    const Outcome outcome =
        tidemark_with({"explain", "vit-ti-16", "--strategy", "mesa", "-o", folder / name});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return file_text(folder / name);
  };
  EXPECT_THAT(text_of("x.html"), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(text_of("x.svg"), StartsWith("<svg "));
  EXPECT_THAT(text_of("x.txt"), HasSubstr("All numbers are predicted."));
  text_of("x.timeline.json.zst");
  EXPECT_EQ(title(read_recording(folder / "x.timeline.json.zst")),
            "vit-ti-16 · mesa · predicted for a100-80gb");
}

TEST(ExplainExport, RefusesAStrategyThatDoesNotApply) {
  const Outcome outcome =
      tidemark("explain vit-ti-16 --strategy reversible+mesa --format timeline");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.errors, HasSubstr("does not apply"));
}

}  // namespace
}  // namespace tidemark::cli::export_commands_test
