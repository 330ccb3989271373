// tests/golden/cli: each file is a command and what it shows. UPDATE_GOLDEN=1 rewrites them; the
// difference is to be reviewed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/cli/program.h"

namespace tidemark::cli::commands_golden_test {
namespace {

const std::filesystem::path folder = std::filesystem::path(TIDEMARK_TESTS_DIR) / "golden/cli";

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") found.push_back(entry.path().stem());
  std::ranges::sort(found);
  return found;
}

// "$ COLUMNS=80 tidemark compare …", then standard output, then what is worth a line of its own.
std::string transcript(const std::string& command) {
  Surroundings around;
  std::vector<std::string> arguments = words(command.substr(2));
  for (; arguments.front() != "tidemark"; arguments.erase(arguments.begin()))
    around.environment.insert(around.environment.begin(), arguments.front());
  arguments.erase(arguments.begin());
  const Outcome outcome = tidemark_with(arguments, around);
  std::string text = command + "\n" + outcome.output;
  if (!outcome.errors.empty()) text += "[standard error]\n" + outcome.errors;
  if (outcome.exit_code != 0) text += "[exit code " + std::to_string(outcome.exit_code) + "]\n";
  return text;
}

class CliGolden : public testing::TestWithParam<std::string> {};

TEST_P(CliGolden, ShowsWhatWasReviewed) {
  const std::filesystem::path path = folder / (GetParam() + ".txt");
  const std::string expected = file_text(path);
  const std::string command = expected.substr(0, expected.find('\n'));
  ASSERT_TRUE(command.starts_with("$ ")) << path;
  const std::string found = transcript(command);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) return write_text(path, found);
  EXPECT_EQ(found, expected) << "UPDATE_GOLDEN=1 rewrites it";
}

INSTANTIATE_TEST_SUITE_P(Commands, CliGolden, testing::ValuesIn(names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tidemark::cli::commands_golden_test
