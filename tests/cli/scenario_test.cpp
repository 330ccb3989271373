// Strategy lists are split, step options get defaults, and options are repeated for a shell.
#include "cli/scenario.h"

#include <gtest/gtest.h>

#include "cli/option_table.h"

namespace tidemark::cli {
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

TEST(ShellQuoted, ProtectsWhatAShellWouldRead) {
  EXPECT_EQ(shell_quoted("vit-b-16"), "vit-b-16");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace tidemark::cli
