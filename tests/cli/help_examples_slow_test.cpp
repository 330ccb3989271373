// The examples that --help shows are what works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/commands/help.h"
#include "tests/cli/program.h"

namespace tidemark::cli::help_examples_slow_test {
namespace {

// What takes minutes, a display, a Python with PyTorch or a program of the user's has tests of its
// own.
bool is_quick(const Command& command) {
  return command.name != "calibrate" && command.name != "view" && command.name != "capture" &&
         command.name != "record";
}

// In one folder and one after the other: what one example writes, the next one reads.
TEST(Examples, OfTheHelpWork) {
  const Folder folder;
  write_text(folder / "script.txt", "a 1 5242880 0\nf 1\n");
  write_text(folder / "tidemark.json",
             R"({"format": "tidemark-check", "version": 1, "experiments": [{"model": "gpt2"}]})");
  const std::string program = TIDEMARK_PROGRAM;
  Surroundings around;
  around.folder = folder.path();
  around.environment.push_back(
      fmt::format("PATH=/usr/bin:/bin:{}", program.substr(0, program.rfind('/'))));
  for (const Command& command : commands())
    for (const Example& example : command.examples) {
      if (!is_quick(command) || example.command.find("here.json") != std::string_view::npos)
        continue;
      const std::vector<std::string> shell = {"/bin/sh", "-c", std::string(example.command)};
      const Outcome outcome = run_command(shell, around);
      EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 4) << example.command << "\n"
                                                                    << outcome.errors;
    }
}

}  // namespace
}  // namespace tidemark::cli::help_examples_slow_test
