// `tidemark plan` as a user meets it: stopped midway, on a terminal, and what it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/interrupted.h"

namespace tidemark::cli::plan_command_test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

// Long enough that the signal comes first: five planners, fronts and forms of forty blocks.
const std::string long_plan =
    "plan llama-13b -b 4 --precision bf16 --tuning lora:r=8,targets=q,v --budget 40GiB "
    "--allow anything --front --forms";

TEST(PlanCommand, CtrlCShowsTheBestSoFar) {
  const Outcome outcome = interrupted(long_plan + " --format json", 1);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "stopped: the best plan that was found by then\n");
  const Json json = Json::parse(outcome.output, nullptr, false);
  EXPECT_EQ(json["stopped"], true);
  EXPECT_LE(json["lower_bound_ns"], json["step_ns"]);
  EXPECT_LE(json["allocated_peak_bytes"], json["budget_bytes"]);
}

TEST(PlanCommand, ASecondCtrlCEndsAtOnce) {
  const Outcome outcome = interrupted(long_plan, 2);
  EXPECT_EQ(outcome.exit_code, 128 + 2);
  EXPECT_EQ(outcome.output, "");
}

TEST(PlanCommand, IsNotStoppedByItself) {
  const Outcome outcome = tidemark("plan vit-ti-16 -b 8 --format json");
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(Json::parse(outcome.output)["stopped"], false);
}

TEST(PlanCommand, FrontsOfEachClassStandBesideEachOther) {
  const Outcome outcome =
      tidemark("plan vit-ti-16 -b 64 -d t4 --front --allow anything --format json");
  const Json json = Json::parse(outcome.output);
  std::vector<std::string> classes;
  for (const Json& front : json["fronts"]) classes.push_back(front["class"]);
  EXPECT_THAT(classes, testing::ElementsAre("exact", "exact,offload", "anything"));
  EXPECT_EQ(json["front"], json["fronts"].back()["front"]);
  EXPECT_THAT(tidemark("plan vit-ti-16 -b 64 -d t4 --front --allow anything").output,
              HasSubstr("\nWhat budgets cost with what plans may do"));
}

}  // namespace
}  // namespace tidemark::cli::plan_command_test
