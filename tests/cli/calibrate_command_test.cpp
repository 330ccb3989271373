// `tidemark calibrate --from`: a device whose rates explain steps that were timed on it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tidemark::cli::calibrate_command_test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string file_of(const std::string& asked, double seconds) {
  return fmt::format(
      R"({{"format": "tidemark-timed-steps", "version": 1, "steps": [{{"compare": "{}", "seconds": {}}}]}})",
      asked, seconds);
}

Outcome calibrated(const Folder& folder, const std::string& json, const std::string& more = "") {
  write_text(folder / "steps.json", json);
  return tidemark("calibrate --from " + folder / "steps.json" + more);
}

double predicted_ms(const std::string& asked) {
  const Outcome outcome = tidemark("compare " + asked + " --strategies vanilla --format json");
  return Json::parse(outcome.output)["rows"][0]["step_ns"].get<double>() / 1e6;
}

// What takes twice as long as predicted is predicted to with the fitted device.
TEST(CalibrateFrom, WritesADeviceThatPredictsTheStep) {
  const Folder folder;
  const std::string asked = "gpt2 -b 8 --precision bf16 -d h100";
  const double before = predicted_ms(asked);
  const Outcome outcome =
      calibrated(folder, file_of(asked, 2 * before / 1e3), " -o " + folder / "ours.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("measured, −50.0 % before, −"));
  const double after = predicted_ms("gpt2 -b 8 --precision bf16 -d " + folder / "ours.json");
  EXPECT_NEAR(after / before, 2, 0.1);
}

// Of a cluster, too: the fitted device then stands for the cluster's own.
TEST(CalibrateFrom, FitsTheDeviceOfACluster) {
  const Folder folder;
  const std::string asked = "gpt2 -b 8 --precision bf16 --gpus 8 --shard fsdp2 --cluster dgx-h100";
  const double before = predicted_ms(asked);
  const Outcome outcome =
      calibrated(folder, file_of(asked, 1.5 * before / 1e3), " -o " + folder / "ours.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  const double after = predicted_ms(asked + " --device " + folder / "ours.json");
  EXPECT_NEAR(after / before, 1.5, 0.05);
}

TEST(CalibrateFrom, ADeviceOfAnotherKindIsNoneOfTheCluster) {
  const Outcome outcome = tidemark("compare gpt2 --gpus 8 --cluster dgx-h100 -d a100-80gb");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors,
              HasSubstr("--device a100-80gb: compute capability 8.0, but the GPUs of --cluster "
                        "dgx-h100 have 9.0"));
}

// The slower network of the second is no rate of the device's own.
TEST(CalibrateFrom, LeavesEachStepInItsCluster) {
  const Folder folder;
  const std::string step =
      "gpt2-xl -b 64 -s 16 --precision bf16 --gpus 64 --shard fsdp2 --cluster ";
  const std::string quick = step + "gb200-nvl72 --device b200", slow = step + "dgx-b200";
  const double quick_s = predicted_ms(quick) / 1e3, slow_s = predicted_ms(slow) / 1e3;
  ASSERT_GT(slow_s, 1.2 * quick_s);
  const Outcome outcome = calibrated(
      folder,
      fmt::format(R"({{"format": "tidemark-timed-steps", "version": 1, "steps": [)"
                  R"({{"compare": "{}", "seconds": {}}}, {{"compare": "{}", "seconds": {}}}]}})",
                  quick, quick_s, slow, slow_s));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors,
              HasSubstr("measured, 0.0 % before, 0.0 % fitted, 0.0 % left out: " + quick));
  EXPECT_THAT(outcome.errors,
              HasSubstr("measured, 0.0 % before, 0.0 % fitted, 0.0 % left out: " + slow));
}

TEST(CalibrateFrom, SaysWhereAFileIsWrong) {
  const Folder folder;
  const auto error = [&](const std::string& json) { return calibrated(folder, json).errors; };
  EXPECT_THAT(error("{}"), HasSubstr("steps.json: "));
  EXPECT_THAT(error(std::string((1 << 20) + 1, ' ')),
              HasSubstr("a file of timed steps may have 1.00 MiB (docs/replay.md shows one)"));
  EXPECT_THAT(error(file_of("gtp2 -b 8", 1)),
              HasSubstr("/steps/0/compare: unknown model 'gtp2' (did you mean 'gpt2'?"));
  EXPECT_THAT(error(file_of("gpt2 -b 8,16", 1)),
              HasSubstr("/steps/0/compare: a list of values; need the one of the step"));
  EXPECT_THAT(error(file_of("gpt2 --help", 1)), HasSubstr("/steps/0/compare: no step is asked"));
  EXPECT_THAT(error(file_of("gpt2", 0)), HasSubstr("/steps/0/seconds: "));
  EXPECT_THAT(error(file_of("gpt2 -d none.json", 1)),
              HasSubstr("steps.json: /steps/0/compare: none.json: cannot open"));
  // What is only found where the step is predicted.
  EXPECT_THAT(error(file_of("gpt2 --mesh tp=5", 1)),
              HasSubstr("steps.json: /steps/0/compare: --mesh: tp: "));
  EXPECT_THAT(error(file_of("gpt2 --precision bf16 --strategy checkpoint:selective", 1)),
              HasSubstr("steps.json: /steps/0/compare: checkpoint:selective does not apply: "));
  EXPECT_THAT(error(R"({"format": "tidemark-timed-steps", "version": 1, "steps": []})"),
              HasSubstr("/steps: found 0 steps; need 1 to 64"));
  EXPECT_THAT(
      error(R"({"format": "tidemark-timed-steps", "version": 1, "steps": [)"
            R"({"compare": "gpt2", "seconds": 1}, {"compare": "gpt2 -d h100", "seconds": 1}]})"),
      HasSubstr("/steps/1/compare: found a step on h100; need all on a100-80gb"));
}

}  // namespace
}  // namespace tidemark::cli::calibrate_command_test
