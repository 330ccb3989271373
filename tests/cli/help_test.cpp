// --help and the manual page come from the same tables as the parser.
#include "cli/commands/help.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "cli/commands/manual_page.h"
#include "cli/text/terminal.h"
#include "tests/cli/program.h"

namespace tidemark::cli::help_test {
namespace {

// Does a line begin with the option? Others may mention it.
bool lists(const std::string& help, std::string_view option) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find_first_not_of(' ');
    if (dash == std::string::npos || line[dash] != '-') continue;
    const std::string head = line.substr(dash, line.find("  ", dash) - dash) + " ";
    for (const char* end : {" ", ","})
      for (const char* begin : {" ", ","})
        if ((" " + head).find(fmt::format("{}{}{}", begin, option, end)) != std::string::npos)
          return true;
  }
  return false;
}

TEST(Help, OfEveryCommandNamesAllItsOptions) {
  for (const Command& command : commands()) {
    const Outcome outcome = tidemark_with({std::string(command.name), "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.output, help_text(command));
    const std::string listed = outcome.output.substr(0, outcome.output.find("\nExamples:"));
    for (const OptionRow& row : option_table()) {
      const std::string_view name = long_name(row);
      EXPECT_EQ(lists(listed, name), (row.verbs & command.bit) != 0) << command.name << " " << name;
    }
  }
}

TEST(Help, FitsIntoEightyColumns) {
  const auto check = [](const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      EXPECT_TRUE(line.starts_with("  tidemark") || display_width(line) <= 80) << line;
    }
  };
  check(help_text());
  for (const Command& command : commands()) check(help_text(command));
}

TEST(Help, AndVersionNeedNoCommand) {
  EXPECT_EQ(tidemark("--help").output, help_text());
  EXPECT_EQ(tidemark("-h").output, help_text());
  EXPECT_EQ(tidemark("--version").output, version_text());
  EXPECT_EQ(tidemark("compare no-such-model --help").exit_code, 0);
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(tidemark("help").output, help_text());
  for (const Command& command : commands())
    EXPECT_EQ(tidemark_with({"help", std::string(command.name)}).output, help_text(command));
}

TEST(Help, OfEachCommandListsTheFormatsOfThatCommand) {
  EXPECT_NE(tidemark("help compare").output.find("csv, markdown, html or"), std::string::npos);
  EXPECT_EQ(tidemark("help compare").output.find("junit"), std::string::npos);
  EXPECT_NE(tidemark("help check").output.find("junit, sarif"), std::string::npos);
  EXPECT_EQ(tidemark("help models").output.find("svg"), std::string::npos);
}

TEST(ManualPage, InTheRepositoryIsWhatTheProgramSays) {
  const Outcome outcome = tidemark("--man");
  EXPECT_EQ(outcome.output, manual_page());
  EXPECT_EQ(outcome.output, file_text(std::string(TIDEMARK_SOURCE_DIR) + "/docs/tidemark.1"))
      << "rewrite it: tidemark --man > docs/tidemark.1";
}

TEST(OptionTable, NamesEachOptionOnceAndExplainsIt) {
  std::set<std::string_view> names;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(names.insert(row.names).second) << row.names;
    EXPECT_FALSE(row.help.empty() || row.help.ends_with('.')) << row.names;
    EXPECT_NE(row.verbs, 0u) << row.names;
  }
}

}  // namespace
}  // namespace tidemark::cli::help_test
