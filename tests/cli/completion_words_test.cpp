// Which words a shell offers behind which: no more than what the command takes.
#include "cli/commands/completion_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tidemark::cli::completion_words_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const Command& command(std::string_view name) {
  return *std::ranges::find(commands(), name, &Command::name);
}

const OptionWords* find(const std::vector<OptionWords>& words, std::string_view option) {
  const auto found = std::ranges::find_if(
      words, [&](const OptionWords& each) { return long_name(*each.row) == option; });
  return found == words.end() ? nullptr : &*found;
}

TEST(CompletionWords, SpellAnOptionInEachOfItsWays) {
  OptionRow row;
  row.names = "-b,--batch";
  EXPECT_THAT(spellings(row), ElementsAre("-b", "--batch"));
  row.names = "--top";
  EXPECT_THAT(spellings(row), ElementsAre("--top"));
}

TEST(CompletionWords, AreThoseOfTheCommand) {
  const auto of_compare = option_words(command("compare"));
  EXPECT_NE(find(of_compare, "--batch"), nullptr);
  EXPECT_EQ(find(of_compare, "--front"), nullptr);  // is plan's
  EXPECT_NE(find(option_words(command("plan")), "--front"), nullptr);
}

TEST(CompletionWords, KnowFilesFromNames) {
  const auto words = option_words(command("compare"));
  EXPECT_TRUE(find(words, "--plan")->is_file);
  EXPECT_FALSE(find(words, "--device")->is_file);
  EXPECT_THAT(find(words, "--device")->names, Contains("a100-80gb"));
  EXPECT_THAT(find(words, "--strategies")->names, Contains("pareprop"));
  EXPECT_THAT(find(words, "--batch")->names, IsEmpty());
}

// Options that follow behind a colon are typed.
TEST(CompletionWords, NameWhatATextWithOptionsBeginsWith) {
  const auto words = option_words(command("search"));
  EXPECT_THAT(find(words, "--schedule")->names,
              ElementsAre("1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v"));
  EXPECT_THAT(find(words, "--shard")->names, Contains("fsdp2"));
  EXPECT_THAT(find(words, "--mesh")->names, IsEmpty());
}

TEST(CompletionWords, NameWhatTheFirstOperandMayBe) {
  EXPECT_THAT(operand_words(command("compare")), Contains("vit-b-16"));
  EXPECT_THAT(operand_words(command("devices")), Contains("t4"));
  EXPECT_THAT(operand_words(command("devices")), Not(Contains("vit-b-16")));
  EXPECT_THAT(operand_words(command("allocator")), IsEmpty());
}

TEST(CompletionWords, OfferFilesWhereAFileIsTaken) {
  for (const std::string_view name : {"compare", "view", "allocator", "diff", "capture"})
    EXPECT_TRUE(takes_files(command(name))) << name;
  for (const std::string_view name : {"devices", "models", "strategies", "completion"})
    EXPECT_FALSE(takes_files(command(name))) << name;
}

TEST(CompletionWords, EndHelpWhereItsFirstThoughtEnds) {
  EXPECT_EQ(short_help("steps to time, after one more (default 5)"),
            "steps to time, after one more");
  EXPECT_EQ(short_help("memory for tensors: 20GiB, 20G"), "memory for tensors");
  EXPECT_EQ(short_help("run the experiments; nothing else changes"), "run the experiments");
  EXPECT_EQ(short_help("keep what is simulated. Then go on"), "keep what is simulated");
  EXPECT_EQ(short_help("the least memory, as 10%"), "the least memory");
  EXPECT_EQ(short_help("all of it stays"), "all of it stays");
}

// "fp32" alone would say less than the list that it begins.
TEST(CompletionWords, LeaveAListWhole) {
  EXPECT_EQ(short_help("fp32: what torch does"), "fp32: what torch does");
  EXPECT_EQ(short_help("twelve long: here it ends"), "twelve long: here it ends");  // 11 letters
  EXPECT_EQ(short_help("twelve longs: here it ends"), "twelve longs");
}

// No menu shows more than a line of it, and none an empty one.
TEST(CompletionWords, HelpEveryOption) {
  for (const OptionRow& row : option_table()) {
    const std::string help = short_help(row.help);
    EXPECT_FALSE(help.empty()) << row.names;
    EXPECT_TRUE(row.help.starts_with(help)) << row.names;
  }
}

}  // namespace
}  // namespace tidemark::cli::completion_words_test
