// Runs of one model that PyTorch's own allocator recorded (scripts/record_snapshots/steps.py)
// beside the step as it was captured: what differs on purpose is what is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/own_folder.h"

namespace tidemark::cli::beside_command_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string beside_folder = TIDEMARK_TESTS_DIR "/reference/beside/";

std::string beside_line(const std::string& name, const std::string& version) {
  return "explain " + beside_folder + "step-" + version + ".trace.json.zst --beside " +
         beside_folder + name + "-" + version + ".pickle";
}

json difference_of(const std::string& name, const std::string& version = "2.6.0") {
  const Outcome outcome = tidemark(beside_line(name, version) + " --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return json::parse(outcome.output);
}

/// The cause of this kind; null if there is none.
json cause_of(const json& difference, const std::string& kind) {
  for (const json& cause : difference["causes"])
    if (cause["kind"] == kind) return cause;
  return nullptr;
}

bool names_tensor(const json& cause, const std::string& tensor) {
  return std::ranges::any_of(cause["tensors"],
                             [&](const json& row) { return row["tensor"] == tensor; });
}

class Beside : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Beside, CausesAddUpToTheDifference) {
  const json difference = difference_of(GetParam().first, GetParam().second);
  std::int64_t sum = 0;
  for (const json& cause : difference["causes"]) sum += cause["bytes"].get<std::int64_t>();
  EXPECT_EQ(sum, difference["difference_bytes"]);
  EXPECT_EQ(difference["recorded_peak_bytes"].get<std::int64_t>() -
                difference["predicted_peak_bytes"].get<std::int64_t>(),
            sum);
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, Beside,
    testing::Values(std::pair("same", "2.6.0"), std::pair("batch", "2.6.0"),
                    std::pair("outputs", "2.6.0"), std::pair("average", "2.6.0"),
                    std::pair("gradients", "2.6.0"), std::pair("checkpointed", "2.6.0"),
                    std::pair("same", "2.15.0"), std::pair("outputs", "2.15.0")));

TEST(BesideCommand, FindsNothingOfSizeInTheStepThatWasCaptured) {
  for (const char* version : {"2.6.0", "2.15.0"}) {
    const json difference = difference_of("same", version);
    EXPECT_EQ(difference["format"], "tidemark-difference-1");
    EXPECT_EQ(difference["scale"], nullptr);
    // The loss of the step before is there, which its variable still holds, and its gradient.
    EXPECT_GE(difference["matched"]["blocks"].get<int>() + 2,
              difference["matched"]["of_blocks"].get<int>());
    for (const json& cause : difference["causes"])
      EXPECT_LT(std::abs(cause["bytes"].get<std::int64_t>()), 4096) << version << cause;
  }
}

TEST(BesideCommand, KnowsAnotherBatch) {
  const json difference = difference_of("batch");
  const json& first = difference["causes"][0];
  EXPECT_EQ(first["kind"], "scaled");
  EXPECT_EQ(difference["scale"], 2);
  EXPECT_THAT(
      first["text"].get<std::string>(),
      HasSubstr("2 times as large as predicted: 23 tensors, as with a batch of 8 in place of 4"));
  EXPECT_TRUE(names_tensor(first, "blocks.0.gelu"));
  EXPECT_FALSE(names_tensor(first, "embed.weight"));
  EXPECT_FALSE(names_tensor(first, "nll_loss_forward"));
}

TEST(BesideCommand, NamesWhatIsKeptFromStepToStepWithItsLine) {
  for (const char* version : {"2.6.0", "2.15.0"}) {
    const json difference = difference_of("outputs", version);
    const json& first = difference["causes"][0];
    EXPECT_EQ(first["kind"], "earlier_steps");
    const json& output = first["tensors"][0];
    EXPECT_EQ(output["tensor"], "head.addmm");
    EXPECT_EQ(output["blocks"], 2);
    EXPECT_EQ(output["bytes"], 2 * 4 * 48 * 500 * 4);  // two batches' logits in fp32
    EXPECT_THAT(output["line"].get<std::string>(), StartsWith("steps.py:"));
    EXPECT_TRUE(names_tensor(cause_of(difference, "held_longer"), "head.addmm")) << version;
  }
}

// A profile names operators instead of lines, and blocks as they were handed out.
TEST(BesideCommand, TakesAProfileOfTheSameRun) {
  const Outcome outcome =
      tidemark("explain " + beside_folder + "step-2.6.0.trace.json.zst --beside " + beside_folder +
               "outputs-2.6.0.json.gz --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json difference = json::parse(outcome.output);
  EXPECT_EQ(difference["recorded_peak_bytes"], difference_of("outputs")["recorded_peak_bytes"]);
  const json kept = cause_of(difference, "earlier_steps");
  ASSERT_EQ(kept["tensors"].size(), 1u);
  EXPECT_EQ(kept["tensors"][0]["tensor"], "head.addmm");
  EXPECT_EQ(kept["tensors"][0]["blocks"], 2);
  EXPECT_EQ(kept["tensors"][0]["allocated_by"], "aten::addmm");
}

TEST(BesideCommand, TellsASecondCopyOfTheModelFromGradientsOfAnEarlierStep) {
  const json average = cause_of(difference_of("average"), "second_copy");
  EXPECT_TRUE(names_tensor(average, "embed.weight"));
  EXPECT_EQ(cause_of(difference_of("average"), "earlier_gradients"), nullptr);
  const json gradients = cause_of(difference_of("gradients"), "earlier_gradients");
  EXPECT_TRUE(names_tensor(gradients, "embed.weight (gradient)"));
  EXPECT_EQ(cause_of(difference_of("gradients"), "second_copy"), nullptr);
  EXPECT_EQ(average["bytes"], gradients["bytes"]);  // as large as each other: all parameters
}

TEST(BesideCommand, NamesWhatTheRunRecomputes) {
  const json missing = cause_of(difference_of("checkpointed"), "missing");
  for (const char* tensor : {"blocks.0.up.addmm", "blocks.1.gelu", "blocks.2.up.addmm"})
    EXPECT_TRUE(names_tensor(missing, tensor)) << tensor;
  EXPECT_LT(missing["bytes"].get<std::int64_t>(), 0);
}

TEST(BesideCommand, NamesWhatTheStrategyGivesUpAndTheRunKeeps) {
  const Outcome outcome =
      tidemark(beside_line("same", "2.6.0") + " --strategy checkpoint --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json kept = cause_of(json::parse(outcome.output), "not_given_up");
  EXPECT_TRUE(names_tensor(kept, "blocks.0.gelu"));
  EXPECT_GT(kept["bytes"], 0);
}

TEST(BesideCommand, TheTableSaysWhyInWords) {
  const Outcome outcome = tidemark(beside_line("outputs", "2.6.0") + " --top 1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("predicted 20.96 · recorded 21.79 MiB · difference +0.83 "
                                        "MiB (+4.0 %)\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("+750.0 KiB: kept from step to step: 2 blocks of earlier steps\n"));
  EXPECT_THAT(outcome.output, HasSubstr("head.addmm"));
}

TEST(BesideCommand, RequireFitSaysSoInItsExitCode) {
  const std::string fit = beside_line("outputs", "2.6.0") + " --require-fit";
  EXPECT_EQ(tidemark(fit).exit_code, 0);
  const Outcome outcome = tidemark(fit + " --budget 1MiB");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("kept from step to step"));
}

TEST(BesideCommand, SaysWhichNumbersAreMeasured) {
  const Outcome outcome = tidemark(beside_line("outputs", "2.6.0"));
  EXPECT_THAT(outcome.output, HasSubstr("vanilla: predicted, fits: yes\n"
                                        "Numbers of the recording are measured, all others are "
                                        "predicted.\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("All numbers are predicted")));
  const json difference = difference_of("outputs");
  EXPECT_FALSE(difference.contains("predicted"));
  EXPECT_EQ(difference["recorded"].value("source", ""), "measured");
}

TEST(BesideCommand, ATimelineThatWasPredictedIsNotCalledMeasured) {
  const std::string step = "explain " + beside_folder + "step-2.6.0.trace.json.zst";
  const std::string timeline = own_folder() + "/step.timeline.json";
  ASSERT_EQ(tidemark(step + " -o " + timeline).exit_code, 0);
  EXPECT_THAT(tidemark(step + " --beside " + timeline).output,
              HasSubstr("All numbers are predicted, those of the recording too.\n"));
  const Outcome outcome = tidemark(step + " --beside " + timeline + " --format json");
  EXPECT_EQ(json::parse(outcome.output)["recorded"].value("source", ""), "predicted");
}

// The prediction is the higher one, so that the run is compared at another moment than its peak.
TEST(BesideCommand, SharesAreOfTheMomentThatIsCompared) {
  const json difference = difference_of("checkpointed");
  const auto compared = difference["matched"].value("of_bytes", std::int64_t{0});
  EXPECT_LT(compared, difference["recorded_peak_bytes"].get<std::int64_t>());
  EXPECT_LE(difference["matched"]["bytes"].get<std::int64_t>(), compared);
  EXPECT_THAT(tidemark(beside_line("checkpointed", "2.6.0")).output,
              HasSubstr("72 of 73 blocks at the moment of the run that is compared are tensors of "
                        "the prediction: 100.0 % of their bytes.\n"));
}

TEST(BesideCommand, WordsOfUnsplitBlocksFollowTheirSign) {
  for (const auto& [name, words] :
       {std::pair("outputs", "beyond what tensors ask for, more than predicted"),
        std::pair("checkpointed", "beyond what tensors ask for, less than predicted")}) {
    const json unsplit = cause_of(difference_of(name), "unsplit");
    ASSERT_NE(unsplit, nullptr) << name;
    EXPECT_THAT(unsplit["text"].get<std::string>(), HasSubstr(words)) << name;
  }
}

TEST(BesideCommand, IsAReportOfItsOwn) {
  for (const char* other : {"--levers", "--saved", "--graph"}) {
    const std::string file = other == std::string("--graph") ? " x.dot" : "";
    const Outcome outcome = tidemark(beside_line("same", "2.6.0") + " " + other + file);
    EXPECT_EQ(outcome.exit_code, 2) << other;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, HasSubstr("--beside is a report of its own (leave out " +
                                          std::string(other) + ")"));
  }
}

TEST(BesideCommand, SaysWhatItCannotTake) {
  const std::string step = "explain " + beside_folder + "step-2.6.0.trace.json.zst --beside ";
  const auto problem_of = [](const std::string& line) {
    const Outcome outcome = tidemark(line);
    EXPECT_NE(outcome.exit_code, 0) << line;
    EXPECT_EQ(outcome.output, "");
    return outcome.errors;
  };
  EXPECT_THAT(problem_of(step + beside_folder + "step-2.6.0.trace.json.zst"),
              HasSubstr("--beside needs what was recorded"));
  EXPECT_THAT(problem_of(step + TIDEMARK_TESTS_DIR "/reference/snapshots/none.pickle"),
              HasSubstr("none.pickle: there is no such file"));
  EXPECT_THAT(problem_of(beside_line("same", "2.6.0") + " --plan-out x.plan.json"),
              HasSubstr("--beside is about the whole step"));
  EXPECT_THAT(problem_of("explain " + beside_folder + "same-2.6.0.pickle --beside " +
                         beside_folder + "same-2.6.0.pickle"),
              HasSubstr("it holds a step that was predicted or measured before"));
}

}  // namespace
}  // namespace tidemark::cli::beside_command_test
