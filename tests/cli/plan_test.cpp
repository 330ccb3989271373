// Plan files on the command line: written by one command, read by the others, beside strategies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tidemark::cli::plan_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr const char* example = "examples/plans/vit-cheap.plan.json";

class PlanOption : public testing::Test {
 protected:
  // The file that explain wrote.
  std::string plan_of(const std::string& strategy, const std::string& name) const {
    const Outcome outcome = tidemark("explain vit-ti-16 -b 2 --strategy " + strategy +
                                     " --plan-out " + (folder_ / name));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return folder_ / name;
  }

  Folder folder_;
};

TEST_F(PlanOption, ComparesFilesBesideStrategies) {
  const std::string path = plan_of("pareprop:released", "mine.plan.json");
  const Outcome outcome = tidemark(
      "compare vit-ti-16 -b 64 --strategies pareprop:released --plan " + path + " --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  Json rows = Json::parse(outcome.output)["rows"];
  ASSERT_EQ(rows.size(), 2u) << outcome.output;
  EXPECT_EQ(rows[0]["strategy"], "pareprop:released");
  EXPECT_EQ(rows[1]["strategy"], "plan:mine");
  rows[1]["strategy"] = rows[0]["strategy"];
  EXPECT_EQ(rows[0], rows[1]);
}

TEST_F(PlanOption, StandsBesideTheUsualStrategiesOfAComparison) {
  const Outcome outcome = tidemark(std::string("compare vit-ti-16 --format csv --plan ") + example);
  EXPECT_THAT(outcome.output, HasSubstr("\nvanilla,"));
  EXPECT_THAT(outcome.output, HasSubstr("\nplan:vit-cheap,"));
}

TEST_F(PlanOption, SaysHowToGoOn) {
  const std::string path = folder_ / "mine.plan.json";
  const Outcome outcome =
      tidemark("explain vit-ti-16 -b 2 --strategy checkpoint --plan-out " + path);
  EXPECT_EQ(outcome.errors,
            path +
                ": written; edit it, then: tidemark compare vit-ti-16 --batch 2 --strategies "
                "vanilla --plan " +
                path + "\n");
  const Outcome compared = tidemark("compare vit-ti-16 -b 2 --strategies vanilla --plan " + path);
  EXPECT_THAT(compared.output,
              EndsWith("Next: tidemark explain vit-ti-16 --batch 2 --plan " + path + "\n"));
}

TEST_F(PlanOption, IsWrittenAgainAsItWasRead) {
  const std::string path = plan_of("ms-bp+mesa", "a.plan.json");
  const Outcome outcome = tidemark("explain vit-ti-16 -b 2 --plan " + path + " --plan-out " +
                                   (folder_ / "b.plan.json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  std::string expected = file_text(path);
  expected.replace(expected.find("ms-bp+mesa"), 10, "plan:a");
  EXPECT_EQ(file_text(folder_ / "b.plan.json"), expected);
}

TEST_F(PlanOption, FilesOfOneNameAreToldApart) {
  std::filesystem::create_directory(folder_.path() / "old");
  const std::string now = plan_of("mesa", "x.plan.json"),
                    old = plan_of("vanilla", "old/x.plan.json");
  const Outcome outcome =
      tidemark("compare vit-ti-16 --strategies vanilla --format csv --plan " + now + "," + old);
  EXPECT_THAT(outcome.output, HasSubstr("\nplan:" + now + ","));
  EXPECT_THAT(outcome.output, HasSubstr("\nplan:" + old + ","));
}

TEST_F(PlanOption, MayComeAgain) {
  const std::string a = plan_of("mesa", "a.plan.json"), b = plan_of("vanilla", "b.plan.json");
  const std::string start = "compare vit-ti-16 --strategies vanilla --format csv --plan " + a;
  const Outcome again = tidemark(start + " --plan " + b), list = tidemark(start + "," + b);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, AllOf(HasSubstr("\nplan:a,"), HasSubstr("\nplan:b,")));
  EXPECT_EQ(again.output, list.output);
  const Outcome one = tidemark("explain vit-ti-16 --plan " + a + " --plan " + b);
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.errors, HasSubstr("one at a time here"));
}

TEST_F(PlanOption, IsReplayed) {
  const Outcome outcome = tidemark(
      std::string("replay vit-ti-16 --image 32 -b 1 --steps 1 --format json --plan ") + example);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const Json json = Json::parse(outcome.output);
  EXPECT_EQ(json["strategy"], "plan:vit-cheap");
  EXPECT_EQ(json["predicted"]["live_peak_bytes"], json["measured"]["live_peak_bytes"]);
}

TEST_F(PlanOption, IsFoundToFitUpToABatch) {
  const Outcome outcome = tidemark(
      std::string(
          "compare vit-ti-16 -d t4 --max-batch --strategies vanilla --format json --plan ") +
      example);
  const Json rows = Json::parse(outcome.output)["rows"];
  EXPECT_GT(rows[1]["largest_batch"], rows[0]["largest_batch"]) << rows.dump(2);
}

TEST_F(PlanOption, NotesThatItWasMadeForAnotherModel) {
  const Outcome outcome = tidemark(std::string("explain vit-s-16 -b 2 --plan ") + example);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.errors, std::string("note: ") + example +
                                ": made for vit-b-16; its names mean those of vit-s-16 here\n");
}

TEST_F(PlanOption, HasTheExampleOfItsPage) {
  EXPECT_THAT(file_text(std::string(TIDEMARK_SOURCE_DIR) + "/docs/plan_format.md"),
              HasSubstr("```json\n" + file_text(std::string(TIDEMARK_SOURCE_DIR) + "/" + example) +
                        "```\n"));
}

TEST_F(PlanOption, MistakesAreOneLine) {
  const auto refused = [](const std::string& line, int exit_code, const std::string& why) {
    const Outcome outcome = tidemark(line);
    EXPECT_EQ(outcome.exit_code, exit_code) << line;
    EXPECT_THAT(outcome.errors, HasSubstr(why)) << line;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  };
  const std::string plan = std::string(" --plan ") + example;
  refused("explain vit-ti-16 --strategy mesa" + plan, 2,
          "--plan takes the place of --strategy (give one of them)");
  refused("explain vit-ti-16" + plan + "," + example + "x", 1, "cannot open");
  refused("explain vit-ti-16 --saved" + plan, 2, "--saved lists what vanilla saves");
  refused("explain vit-ti-16 --strategy mesa --plan-out /no/such/folder/x.plan.json", 1,
          "/no/such");
  refused("explain vit-ti-16 --plan examples/gpt2/config.json", 1, "not a plan file");
  refused("compare vit-ti-16 --plan tests/zoo/tidemark.json", 1, "not a plan file");
}

}  // namespace
}  // namespace tidemark::cli::plan_test
