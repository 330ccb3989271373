// Strategy lists are split, step options get defaults, lists of values become points, and options
// are repeated for a shell.
#include "cli/commands/scenario.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/commands/option_table.h"
#include "tests/cli/program.h"

namespace tidemark::cli::scenario_test {
namespace {

std::vector<std::string> texts(std::string_view list) {
  std::vector<std::string> result;
  for (const StrategySpec& spec : parse_strategies(list)) result.push_back(spec.text);
  return result;
}

using Texts = std::vector<std::string>;

TEST(StrategyList, IsSplitAtCommas) {
  EXPECT_EQ(texts("vanilla,checkpoint,mesa"), (Texts{"vanilla", "checkpoint", "mesa"}));
  EXPECT_EQ(texts("vanilla"), Texts{"vanilla"});
}

TEST(StrategyList, KeepsTheCommasBetweenOptionsOfOneStrategy) {
  EXPECT_EQ(texts("pareprop:hoist,released,vanilla"),
            (Texts{"pareprop:hoist,released", "vanilla"}));
}

TEST(StrategyList, ContinuesTheLastOfACombination) {
  EXPECT_EQ(texts("approx-bp+pareprop:hoist,released,mesa:released+checkpoint"),
            (Texts{"approx-bp+pareprop:hoist,released", "mesa:released+checkpoint"}));
  EXPECT_EQ(texts("pareprop:hoist,released+approx-bp"), Texts{"pareprop:hoist,released+approx-bp"});
}

TEST(StrategyList, RefusesEmptyNames) {
  for (const char* list : {"", ",", "vanilla,", ",vanilla", "vanilla,,mesa", "vanilla+", "mesa:"})
    EXPECT_THROW(parse_strategies(list), UsageError) << list;
}

TEST(StrategyList, RefusesAnOptionOfAnotherStrategy) {
  EXPECT_THROW(parse_strategies("mesa:released,every=2"), UsageError);
  EXPECT_THROW(parse_strategies("vanilla,every=2"), UsageError);
}

TEST(StepOptions, UseTheFrameworksPrecisionUnlessOneIsGiven) {
  Options options;
  EXPECT_EQ(precision_of(step_of(options)), Precision::Fp32);
  options.step["--framework"] = "torch-1.7-amp";
  EXPECT_EQ(precision_of(step_of(options)), Precision::AmpFp16);
  options.step["--precision"] = "fp32";
  EXPECT_EQ(precision_of(step_of(options)), Precision::Fp32);
}

TEST(StepOptions, NoteTheDtypeOfWeightsWhereNobodyAsksForAPrecision) {
  Model model;
  model.name = "half.json", model.notes = {"a note"}, model.precision_note = "in float16";
  EXPECT_EQ(notes_on(model, {}), "note: half.json: a note\nnote: half.json: in float16\n");
  EXPECT_EQ(notes_on(model, {.precision = Precision::Fp32}), "note: half.json: a note\n");
}

TEST(StepOptions, LeaveTheMovingAverageToTheRecipeUnlessOneIsGiven) {
  Options options;
  EXPECT_EQ(step_of(options).ema, std::nullopt);
  options.step["--no-ema"] = "false";
  EXPECT_EQ(step_of(options).ema, false);
}

TEST(AsTyped, RepeatsTheOptionsForAShell) {
  Options options;
  options.step["--batch"] = "64";
  options.step["--tuning"] = "frozen:embed*,blocks.0.*";
  options.step["--ddp"] = "true";
  options.device = "h100";
  EXPECT_EQ(as_typed(options, "step"), " --batch 64 --tuning 'frozen:embed*,blocks.0.*' --ddp");
  EXPECT_EQ(as_typed(options, "device"), " --device h100");
}

TEST(AsTyped, SaysAFlagWithoutAValueAndNothingOfOtherGroups) {
  Options options;
  options.require_fit = true;
  options.top = "3";
  options.quiet = true;
  EXPECT_EQ(as_typed(options, "scenario"), " --top 3 --require-fit");
  EXPECT_EQ(as_typed(options, "window"), "");
}

// --- several values -----------------------------------------------------------------------------

std::vector<std::string> points(const Options& options) {
  std::vector<std::string> texts;
  for (const Options& point : points_of(options))
    texts.push_back(fmt::format("{}{}", point.device.value_or("none"), as_typed(point, "step")));
  return texts;
}

TEST(Points, AreOneWithoutLists) {
  Options options;
  options.step["--batch"] = "eight";  // its mistake is told later, as that of one number
  EXPECT_EQ(points(options), Texts{"none --batch eight"});
}

TEST(Points, AreAllCombinationsTheBatchVaryingFastest) {
  Options options;
  options.device = "t4,h100";
  options.step["--batch"] = "8,16";
  options.step["--sequence"] = "64:128:64";
  EXPECT_EQ(points(options),
            (Texts{"t4 --batch 8 --sequence 64", "t4 --batch 16 --sequence 64",
                   "t4 --batch 8 --sequence 128", "t4 --batch 16 --sequence 128",
                   "h100 --batch 8 --sequence 64", "h100 --batch 16 --sequence 64",
                   "h100 --batch 8 --sequence 128", "h100 --batch 16 --sequence 128"}));
}

TEST(Points, HaveEachDeviceOnce) {
  Options options;
  options.device = "t4,h100,t4";
  EXPECT_EQ(points(options), (Texts{"t4", "h100"}));
}

TEST(Points, TakeAnExistingFileForOneDeviceWhateverItsName) {
  const Folder folder;
  Options options;
  options.device = folder / "mine,yours.json";
  EXPECT_EQ(points_of(options).size(), 2u);
  write_text(folder / "mine,yours.json", "{}");
  EXPECT_EQ(points_of(options).size(), 1u);
}

TEST(Points, AreAtMostTenThousand) {
  Options options;
  options.step["--batch"] = "1:10000:1";
  EXPECT_EQ(points_of(options).size(), 10'000u);
  options.device = "t4,h100";
  EXPECT_THROW(points_of(options), UsageError);
}

TEST(Counts, AreWholeNumbersWithinTheirLimits) {
  EXPECT_EQ(parse_count("3", "--top", 3, 5), 3);
  EXPECT_EQ(parse_count("5", "--top", 3, 5), 5);
  for (const char* text : {"2", "6", "", "4x", " 4", "+4", "4.0", "99999999999999999999"})
    EXPECT_THROW(parse_count(text, "--top", 3, 5), UsageError) << text;
}

TEST(OneStrategy, IsVanillaUnlessOneIsNamed) {
  Options options;
  EXPECT_EQ(one_strategy(options).text, "vanilla");
  options.strategies = "mesa+checkpoint:every=2";
  EXPECT_EQ(one_strategy(options).text, "mesa+checkpoint:every=2");
  options.strategies = "mesa,checkpoint";
  EXPECT_THROW(one_strategy(options), UsageError);
}

TEST(StepOptions, RefuseTwoSwitchesOfOneField) {
  Options options;
  options.step["--ema"] = "true";
  EXPECT_EQ(step_of(options).ema, true);
  options.step["--no-ema"] = "false";
  EXPECT_THROW(step_of(options), UsageError);
}

TEST(ShellQuoted, ProtectsWhatAShellWouldRead) {
  EXPECT_EQ(shell_quoted("vit-b-16"), "vit-b-16");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace tidemark::cli::scenario_test
