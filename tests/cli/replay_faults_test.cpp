// What can go wrong around a replay, as a user meets it: one line, the exit code, nothing half
// written, and Ctrl-C.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_replay.h"
#include "tests/cli/interrupted.h"

namespace tidemark::cli::replay_faults_test {
namespace {

using testing::HasSubstr;

// Some milliseconds a step; a device predicts, so that this machine need not be measured first.
const std::string quick = "replay vit-ti-16 --image 32 --optimizer sgd -d t4 --no-check --steps 1 ";

void expect_one_line(const Outcome& outcome, int exit_code, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.errors, HasSubstr(part));
  EXPECT_TRUE(outcome.errors.starts_with("tidemark: ")) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

Outcome with_plugin(const std::string& file) {
  Surroundings around;
  around.environment.push_back("TIDEMARK_CUDA_PLUGIN=" + file);
  return tidemark(quick + "--backend cuda", around);
}

TEST(ReplayFaults, AMissingPluginIsNamedWithItsRemedy) {
  expect_one_line(with_plugin("/no/such/plugin.so"), 5, "no CUDA plugin at /no/such/plugin.so");
  EXPECT_THAT(with_plugin("/no/such/plugin.so").errors, HasSubstr("set TIDEMARK_CUDA_PLUGIN"));
}

// Each of them is refused; without a driver that is said instead, because it must come first.
TEST(ReplayFaults, NoBrokenPluginDoesHarm) {
  const Folder folder;
  write_text(folder / "text.so", "no library at all\n");
  const std::string fakes = std::string(TIDEMARK_FAKE_LIBRARIES) + "/";
  for (const std::string& file :
       {folder / "text.so", fakes + "fake_cupti.so", fakes + "fake_plugin_without_gpu.so",
        fakes + "fake_plugin_of_another_version.so"}) {
    ASSERT_TRUE(std::filesystem::exists(file)) << file;
    expect_one_line(with_plugin(file), 5, "");
  }
}

TEST(ReplayFaults, ADiskThatIsFullIsAnError) {
  expect_one_line(tidemark(quick + "-o /dev/full"), 1, "/dev/full: cannot write: No space left");
  Surroundings around;
  around.output_path = "/dev/full";
  expect_one_line(tidemark(quick, around), 1, "standard output: cannot write: No space left");
}

TEST(ReplayFaults, WhatCannotBeWrittenLeavesNothing) {
  expect_one_line(tidemark(quick + "-o /no/such/folder/file"), 1, "cannot write: No such file");
  const Folder folder;
  expect_one_line(tidemark(quick + "-o " + folder.path().string()), 1, "Is a directory");
  // Nor does a replay that fails before there is anything to write.
  const Outcome large = tidemark("replay vit-ti-16 -d t4 -b 1000000 -o " + (folder / "large.txt"));
  expect_one_line(large, 1, "can be had here");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ReplayFaults, AnArenaLargerThanMemoryIsRefusedBeforeItIsTouched) {
  const Outcome outcome = tidemark("replay vit-ti-16 -d t4 -b 1000000");
  expect_one_line(outcome, 1, "cannot allocate ");
  EXPECT_THAT(outcome.errors, HasSubstr("choose a smaller batch or another strategy"));
}

TEST(ReplayFaults, NumbersThatAreNoneAreUsageErrors) {
  expect_one_line(tidemark(quick + "--seed -1"), 2, "--seed: '-1' is not a whole number");
  expect_one_line(tidemark("replay vit-ti-16 --steps 0"), 2, "--steps: '0' is not a whole number");
  expect_one_line(tidemark("replay vit-ti-16 --steps 1e3"), 2, "--steps: '1e3' is not");
  expect_one_line(tidemark("replay vit-ti-16 -b 99999999999999"), 2, "--batch: '99999999999999'");
  expect_one_line(tidemark("replay vit-ti-16 -b 1099511627776 -d t4"), 1, "use a smaller batch");
}

// A trace file in which every `from` reads `to`.
class ChangedTrace {
 public:
  ChangedTrace(const std::string& from, const std::string& to) {
    const std::string made = folder_ / "made.trace.json";
    EXPECT_EQ(tidemark("trace vit-ti-16 --image 32 -q -o " + made).exit_code, 0);
    std::string text = file_text(made);
    std::size_t count = 0;
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()), ++count)
      text.replace(at, from.size(), to);
    EXPECT_GT(count, 0u) << from;
    write_text(file(), text);
  }
  std::string file() const { return folder_ / "changed.trace.json"; }
  Outcome replayed() const { return tidemark("replay -d t4 --no-check --steps 1 " + file()); }

 private:
  Folder folder_;
};

TEST(ReplayFaults, ATransformThatDoesNotFitItsShapesNamesTheOp) {
  expect_one_line(ChangedTrace("\"split_heads\"", "\"patch_merging\"").replayed(), 1,
                  "split 'blocks.0.attn.unpack'");
  expect_one_line(ChangedTrace("\"merge_heads\"", "\"to_rows\"").replayed(), 1,
                  "view 'blocks.0.attn.merge'");
}

// What files of Tidemark before layout transforms were said look like: fine to plan with, not to
// run.
TEST(ReplayFaults, ATraceWithoutTransformsIsPlannedButNotRun) {
  const ChangedTrace trace("\"layout_transform\": \"split_heads\"", "\"offset\": 0");
  EXPECT_EQ(tidemark("compare -d t4 --strategies vanilla " + trace.file()).exit_code, 0);
  expect_one_line(trace.replayed(), 1, "split 'blocks.0.attn.unpack'");
}

TEST(ReplayFaults, OffsetsBeyondEveryTensorAreRefused) {
  for (const char* offset : {"-1", "1000000", "9223372036854774784", "1e300", "-1e300", "0.5"})
    expect_one_line(
        ChangedTrace("\"layout_transform\": \"split_heads\"",
                     std::string("\"layout_transform\": \"split_heads\", \"offset\": ") + offset)
            .replayed(),
        1, "split 'blocks.0.attn.unpack'");
}

TEST(ReplayFaults, CtrlCShowsWhatWasMeasured) {
  const Outcome outcome =
      interrupted("replay vit-ti-16 --image 32 -d t4 --steps 1000000 --format json", 1);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "stopped: what was measured so far\n");
  const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
  EXPECT_EQ(json["steps_asked"], 1000000);
  EXPECT_LT(json["steps_timed"], 1000000);
  EXPECT_EQ(json["measured"].is_null(), json["steps_timed"] == 0);
}

TEST(ReplayFaults, CtrlCEndsAComparisonBehindTheStrategyThatRuns) {
  const Outcome outcome = interrupted("compare vit-ti-16 -d t4 --replay cpu", 1);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("stopped: 1 of "));
  EXPECT_THAT(outcome.output, HasSubstr("vanilla"));
}

TEST(ReplayFaults, ASecondCtrlCEndsAtOnce) {
  const Outcome outcome = interrupted("replay vit-ti-16 -b 16 -d t4 --no-check", 2);
  EXPECT_EQ(outcome.exit_code, 128 + 2);
  EXPECT_EQ(outcome.output, "");
}

TEST(ReplayFaults, WhatWasNotMeasuredIsNotShownAsZero) {
  profiler::ReplayScenario scenario;
  scenario.trace = std::make_shared<Trace>();
  profiler::ReplayReport report;
  report.predicted.planned = Bytes{1 << 20};
  EXPECT_THAT(replay_table(scenario, report, {}), HasSubstr("none; stopped before"));
  EXPECT_THAT(replay_markdown(report), HasSubstr("| planned arena | 1024 KiB | – |  |"));
  EXPECT_THAT(replay_csv(report), HasSubstr("planned_bytes,1048576,\n"));
  EXPECT_THAT(replay_json(scenario, report), HasSubstr("\"measured\": null"));
  report.steps_timed = 1;
  EXPECT_THAT(replay_csv(report), HasSubstr("planned_bytes,1048576,0\n"));
}

}  // namespace
}  // namespace tidemark::cli::replay_faults_test
