// What Tab offers: asked of the real shells. zsh and fish only where they are installed.
#include "cli/commands/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/commands/commands.h"
#include "simulator/strategies/strategy.h"
#include "tests/cli/program.h"
#include "traces/presets.h"

namespace tidemark::cli::completion_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Words = std::set<std::string>;

bool is_installed(const std::string& shell) {
  return std::filesystem::exists("/usr/bin/" + shell) || std::filesystem::exists("/bin/" + shell);
}

Words lines_of(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) words.insert(line.substr(0, line.find('\t')));
  return words;
}

class Completion : public testing::Test {
 protected:
  // The answer of bash when Tab is pressed behind these words; the last may be "".
  Words bash(const std::vector<std::string>& typed) {
    write_text(folder_ / "script", bash_completion());
    std::string line = "source " + (folder_ / "script") + "; COMP_WORDS=(";
    for (const std::string& word : typed) line += "'" + word + "' ";
    line += ") COMP_CWORD=" + std::to_string(typed.size() - 1) +
            "; _tidemark; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const Outcome outcome = run_command({"bash", "--norc", "-c", line}, {.folder = folder_.path()});
    EXPECT_EQ(outcome.errors, "");
    Words words = lines_of(outcome.output);
    words.erase("");
    return words;
  }

  Folder folder_;
};

TEST_F(Completion, OfBashNamesEveryCommand) {
  const Words offered = bash({"tidemark", ""});
  for (const Command& command : commands())
    EXPECT_THAT(offered, Contains(std::string(command.name)));
  EXPECT_EQ(bash({"tidemark", "comp"}), (Words{"compare", "completion"}));
  EXPECT_EQ(bash({"tidemark", "help", "exp"}), Words{"explain"});
}

TEST_F(Completion, OfBashNamesEveryOptionOfEachCommand) {
  for (const Command& command : commands()) {
    const Words offered = bash({"tidemark", std::string(command.name), "-"});
    for (const OptionRow& row : option_table())
      EXPECT_EQ(offered.contains(std::string(long_name(row))), (row.verbs & command.bit) != 0)
          << command.name << long_name(row);
  }
}

TEST_F(Completion, OfBashNamesWhatAnOptionMayBe) {
  EXPECT_EQ(bash({"tidemark", "compare", "vit-b-16", "--precision", "amp"}),
            (Words{"amp-fp16", "amp-bf16"}));
  EXPECT_EQ(bash({"tidemark", "compare", "--device", "=", "h"}), (Words{"h100", "h200"}));
  EXPECT_EQ(bash({"tidemark", "compare", "-d", "t4,h"}), (Words{"t4,h100", "t4,h200"}));
  EXPECT_EQ(bash({"tidemark", "compare", "--strategies", "vanilla,par"}),
            Words{"vanilla,pareprop"});
  EXPECT_EQ(bash({"tidemark", "explain", "gpt2", "--schedule", "zb-h"}), (Words{"zb-h1", "zb-h2"}));
  EXPECT_EQ(bash({"tidemark", "search", "gpt2", "--shard", "fs"}), (Words{"fsdp1", "fsdp2"}));
  EXPECT_THAT(bash({"tidemark", "check", "--format", ""}), Contains("sarif"));
  EXPECT_THAT(bash({"tidemark", "compare", "--format", ""}), Not(Contains("sarif")));
  EXPECT_THAT(bash({"tidemark", "compare", "--batch", ""}), IsEmpty());
}

TEST_F(Completion, OfBashNamesModelsAndFiles) {
  write_text(folder_ / "vit-mine.json", "{}");
  const Words offered = bash({"tidemark", "compare", "vit-"});
  EXPECT_THAT(offered, Contains("vit-b-16"));
  EXPECT_THAT(offered, Contains("vit-mine.json"));
  EXPECT_EQ(bash({"tidemark", "explain", "x", "-o", "vit-m"}), Words{"vit-mine.json"});
  EXPECT_THAT(bash({"tidemark", "strategies", "vit-"}), IsEmpty());
}

TEST_F(Completion, IsACommandThatKnowsThreeShells) {
  for (const Shell& shell : shells())
    EXPECT_EQ(tidemark_with({"completion", std::string(shell.name)}).output, shell.script());
  EXPECT_THAT(tidemark("completion").errors, HasSubstr("no shell (tidemark completion bash"));
  EXPECT_THAT(tidemark("completion bsh").errors, HasSubstr("did you mean 'bash'?"));
}

TEST_F(Completion, OfZshIsSoundAndNamesTheDevices) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  write_text(folder_ / "_tidemark", zsh_completion());
  EXPECT_EQ(run_command({"zsh", "-n", folder_ / "_tidemark"}).errors, "");
  // compadd and _describe as they are called, without a line editor.
  const std::string line =
      "compdef() { :; }; compset() { :; }; _files() { print FILES; }; "
      "compadd() { shift; print -l -- $@; }; _describe() { print -l -- ${(P)2}; }; "
      "source " +
      (folder_ / "_tidemark") +
      "; words=(tidemark compare --device ''); CURRENT=4; "
      "_tidemark; words=(tidemark compare x --schedule ''); CURRENT=5; _tidemark; "
      "words=(tidemark compare ''); CURRENT=3 PREFIX=; _tidemark; "
      "words=(tidemark diff -); CURRENT=3 PREFIX=-; _tidemark";
  const Outcome outcome = run_command({"zsh", "-f", "-c", line});
  EXPECT_EQ(outcome.errors, "");
  const Words offered = lines_of(outcome.output);
  for (const char* word : {"h100", "vit-b-16", "zb-v", "FILES",
                           "--top:how many rows to list of tensors "
                           "alive at the peak, or of each table of differences"})
    EXPECT_THAT(offered, Contains(word));
}

TEST_F(Completion, OfFishNamesCommandsOptionsAndValues) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  write_text(folder_ / "tidemark.fish", fish_completion());
  const auto fish = [&](const std::string& typed) {
    const Outcome outcome =
        run_command({"fish", "--no-config", "-c",
                     "source " + (folder_ / "tidemark.fish") + "; complete -C '" + typed + "'"},
                    {.environment = {"HOME=" + folder_.path().string(), "PATH=/usr/bin:/bin"}});
    EXPECT_EQ(outcome.errors, "");
    return lines_of(outcome.output);
  };
  EXPECT_THAT(fish("tidemark comp"), Contains("compare"));
  EXPECT_THAT(fish("tidemark compare vit-b"), Contains("vit-b-16"));
  EXPECT_THAT(fish("tidemark compare vit-b-16 --device h"), Contains("h100"));
  EXPECT_THAT(fish("tidemark compare x --strategies vanilla,me"), Contains("vanilla,mesa"));
  EXPECT_THAT(fish("tidemark compare gpt2 --schedule inter"), Contains("interleaved"));
  EXPECT_THAT(fish("tidemark compare vit-b-16 --prec"), Contains("--precision"));
}

}  // namespace
}  // namespace tidemark::cli::completion_test
