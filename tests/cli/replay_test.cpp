// The program's replay: real steps of small models, as a user would run them.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/text/terminal.h"
#include "tests/cli/program.h"

namespace tidemark::cli::replay_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// ViT-Ti on images of 32 pixels: five tokens, a step of some milliseconds.
// Predicted for a device: measuring this machine first would take a second each time.
constexpr const char* step = "vit-ti-16 --image 32 -b 2 --optimizer sgd -d a100-80gb";

Outcome run(const std::string& arguments) { return tidemark(arguments); }

Json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return Json::parse(outcome.output, nullptr, false);
}

TEST(ReplayCommand, JsonHasPredictedAndMeasuredUnderTheSameKeys) {
  const Json json =
      parsed(run(std::string("replay ") + step + " --strategy checkpoint --steps 2 --format json"));
  EXPECT_EQ(json["format"], "tidemark-replay-1");
  for (const char* key : {"live_peak_bytes", "at_peak_bytes", "planned_bytes"})
    EXPECT_EQ(json["predicted"][key], json["measured"][key]) << key;
  for (const char* key : {"step_ns", "overlap_ns", "recompute_ns", "hidden_recompute_ns"})
    EXPECT_TRUE(json["predicted"].contains(key) && json["measured"].contains(key)) << key;
  for (const char* side : {"predicted", "measured"})
    EXPECT_EQ(json[side]["hidden_recompute_share"], 0) << side;  // one stream hides nothing
  EXPECT_GT(json["measured"]["recompute_ns"], 0);
  EXPECT_EQ(json["loss"].size(), 3u);  // two steps after one to warm up
  EXPECT_EQ(json["gradient_bit_identical"], true);
  EXPECT_EQ(json["gradient_max_rel_error"], 0);
  EXPECT_EQ(json["gradient_rel_error"], 0);
}

TEST(ReplayCommand, TableSaysWhatIsPredictedAndWhatIsMeasured) {
  const Outcome outcome = run(std::string("replay ") + step + " --strategy pareprop --steps 1");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* text : {"predicted", "measured", "planned arena", "recovery, hidden",
                           "gradients: within", "loss per step:"})
    EXPECT_THAT(outcome.output, HasSubstr(text));
}

TEST(ReplayCommand, TheSameSeedGivesTheSameLosses) {
  const std::string again =
      std::string("replay ") + step + " --steps 2 --no-check --format json --seed ";
  const Json first = parsed(run(again + "5")), second = parsed(run(again + "5"));
  EXPECT_EQ(first["loss"], second["loss"]);
  EXPECT_NE(first["loss"], parsed(run(again + "6"))["loss"]);
}

TEST(ReplayCommand, AStrategyThatDoesNotApplySaysWhyAndExitsWithZero) {
  const Outcome outcome = run(std::string("replay ") + step + " --strategy checkpoint:selective");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("does not apply: "));
}

TEST(ReplayCommand, TheNullBackendNeedsNoMemory) {
  const Json json = parsed(
      run("replay llama-13b --precision bf16 --backend null --strategy checkpoint --format json"));
  EXPECT_EQ(json["predicted"]["planned_bytes"], json["measured"]["planned_bytes"]);
  EXPECT_EQ(json["predicted"]["recompute_ns"], json["measured"]["recompute_ns"]);
  EXPECT_TRUE(json["loss"].empty());
}

TEST(ReplayCommand, ATimelineOfARealStepCanBeComparedWithItsPrediction) {
  const std::string folder = testing::TempDir();
  const std::string measured = folder + "measured.timeline.json";
  const std::string predicted = folder + "predicted.timeline.json";
  ASSERT_EQ(
      run(std::string("replay ") + step + " --steps 1 --no-check -q -o " + measured).exit_code, 0);
  ASSERT_EQ(run(std::string("explain ") + step + " -o " + predicted).exit_code, 0);
  const Outcome outcome = run("diff " + predicted + " " + measured);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("measured"));
}

TEST(CompareReplay, MeasuresEveryStrategyThatApplies) {
  const Json json = parsed(run(std::string("compare ") + step +
                               " --strategies vanilla,mesa,pareprop,checkpoint:selective --replay "
                               "cpu --format json"));
  ASSERT_EQ(json["rows"].size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json["rows"][i]["predicted"]["planned_bytes"],
              json["rows"][i]["measured"]["planned_bytes"]);
    EXPECT_GT(json["rows"][i]["measured"]["step_ns"], 0);
  }
  EXPECT_EQ(json["rows"][3]["applies"], false);
}

TEST(CompareReplay, PrintsTablesForPeopleAndPrograms) {
  const std::string compare =
      std::string("compare ") + step + " --strategies vanilla,reversible --replay null --format ";
  EXPECT_THAT(run(compare + "table").output, HasSubstr("each measured number stands right"));
  EXPECT_THAT(run(compare + "markdown").output, HasSubstr("| strategy | live |"));
  EXPECT_THAT(run(compare + "csv").output, HasSubstr("strategy,applies,predicted_live_peak_bytes"));
}

// Wherever the program runs: what does not fit a narrow terminal continues below or is named.
TEST(CompareReplay, FitsEightyColumns) {
  Surroundings around;
  around.environment.push_back("COLUMNS=80");
  const std::string networks = std::string(step) + " --replay null --strategies ";
  const Outcome compared = tidemark(
      "compare " + networks + "vanilla,checkpoint:selective,lowmemorybp+checkpoint", around);
  const Outcome alone = tidemark(std::string("replay ") + step + " --strategy pareprop", around);
  EXPECT_THAT(compared.output, HasSubstr("left out of 80 columns"));
  EXPECT_THAT(compared.output, HasSubstr("checkpoint:selective: attention is fused"));
  EXPECT_THAT(alone.output, HasSubstr("hidden: "));
  for (const Outcome* outcome : {&compared, &alone}) {
    std::istringstream lines(outcome->output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
  }
}

TEST(CompareReplay, CsvHasWhatNarrowTablesLeaveOut) {
  const Outcome outcome = run(std::string("compare ") + step +
                              " --strategies vanilla,checkpoint --replay cpu --format csv");
  EXPECT_THAT(outcome.output,
              HasSubstr("resident_peak_bytes,gradient_reference,gradient_max_rel_error"));
  EXPECT_THAT(outcome.output, HasSubstr(",vanilla,0,true,0\n"));
}

// What programs read is never a sentence for people.
TEST(ReplayCommand, OfAStrategyThatDoesNotApplyWritesNoTextIntoFilesForPrograms) {
  const std::string line =
      std::string("replay ") + step + " --backend null --strategy reversible+mesa";
  const std::string refusal =
      "reversible+mesa does not apply: reversible + mesa: states are recovered";
  EXPECT_THAT(run(line).output, HasSubstr(refusal));
  EXPECT_EQ(parsed(run(line + " --format json"))["applies"], false);
  const Outcome table = run(line + " --format csv");
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_EQ(std::ranges::count(table.output, '\n'), 1) << table.output;
  EXPECT_THAT(table.output, HasSubstr("predicted,measured"));
  EXPECT_THAT(table.errors, HasSubstr(refusal));
  const Folder folder;
  for (const char* format : {"timeline", "chrome"}) {
    const std::string path = folder / (std::string("x.") + format + ".json");
    const Outcome outcome = run(line + " -o " + path);
    EXPECT_EQ(outcome.exit_code, 1) << format;
    EXPECT_THAT(outcome.errors, HasSubstr("tidemark: " + refusal));
    EXPECT_FALSE(std::filesystem::exists(path)) << format;
  }
}

// A strategy that does not apply has no numbers, and as many cells; first or last.
TEST(CompareReplay, CsvHasACellForEveryColumnInEveryRow) {
  for (const char* strategies : {"vanilla,checkpoint,reversible+mesa", "reversible+mesa,vanilla"}) {
    const Outcome outcome = run(std::string("compare ") + step + " --replay null --format csv " +
                                "--strategies " + strategies);
    std::istringstream lines(outcome.output);
    std::string heads, line;
    std::getline(lines, heads);
    EXPECT_THAT(heads, HasSubstr(",predicted_hidden_recompute_ns,measured_hidden_recompute_ns,"));
    while (std::getline(lines, line))
      EXPECT_EQ(std::ranges::count(line, ','), std::ranges::count(heads, ',')) << line;
  }
}

TEST(CompareReplay, SaysWhoseGradientsAreComparedAndWhoDoesNotApply) {
  const std::string line = std::string("compare ") + step + " --replay cpu --strategies vanilla,";
  const std::string others = run(line + "checkpoint,reversible+mesa").output,
                    rewired = run(line + "reversible").output;
  const std::string star = "* another network: compared with itself, all activations kept";
  EXPECT_THAT(others, HasSubstr("gradient: largest difference from vanilla's"));
  EXPECT_THAT(others, Not(HasSubstr(star)));
  EXPECT_THAT(others, HasSubstr("\nDoes not apply:\n  reversible+mesa: "));
  EXPECT_THAT(rewired, HasSubstr(star));
  EXPECT_THAT(rewired, Not(HasSubstr("Does not apply")));
}

TEST(CompareReplay, RefusesWhatItWouldPassOver) {
  const std::string compare = std::string("compare ") + step + " --replay null ";
  for (const char* option : {"--max-batch", "--units", "--require-fit", "--budget 1GiB",
                             "--alloc-conf expandable_segments:True"}) {
    const Outcome outcome = run(compare + option);
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_THAT(outcome.errors, HasSubstr("is for predictions alone"));
  }
  const Outcome picture = run(compare + "-o x.svg");
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_THAT(picture.errors, HasSubstr("'x.svg': svg is not available here"));
}

// A calibration takes minutes: what cannot be written is told before it.
TEST(CalibrateCommand, AsksFirstWhereToWrite) {
  const Outcome outcome = run("calibrate -o /no/such/folder/here.json");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("cannot write: No such file or directory"));
}

TEST(CalibrateCommand, RefusesTheNullBackend) {
  const Outcome outcome = run("calibrate --backend null");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("use cpu or cuda"));
}

TEST(ReplayCommand, UnknownBackendsAndStepsAreUsageErrors) {
  EXPECT_EQ(run("replay vit-ti-16 --backend gpu").exit_code, 2);
  EXPECT_EQ(run("replay vit-ti-16 --steps 0").exit_code, 2);
  EXPECT_EQ(run("replay vit-ti-16 --steps many").exit_code, 2);
}

}  // namespace
}  // namespace tidemark::cli::replay_test
