// Tables for people: colours, characters and width follow the terminal and what the user asked for.
#include "cli/text/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/program.h"

namespace tidemark::cli::terminal_test {
namespace {

/// What a terminal of `columns` shows of standard output and standard error.
std::string on_terminal(std::vector<std::string> command, unsigned short columns,
                        std::vector<std::string> environment = {"TERM=xterm", "LANG=C.UTF-8"}) {
  winsize size{};
  size.ws_col = columns, size.ws_row = 40;
  int master = -1;
  command.insert(command.begin(), TIDEMARK_PROGRAM);
  auto arguments = pointers(command);
  auto variables = pointers(environment);
  const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  std::string text;
  char chunk[4096];
  for (ssize_t count = 0; (count = ::read(master, chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(count));
  ::close(master);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

bool has_color(const std::string& text) { return text.find("\x1b[3") != std::string::npos; }

std::size_t longest_table_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line, '\r');)  // a terminal's lines end in both
    if (line.starts_with("\nvanilla ") || line.starts_with("\nstrategy "))
      longest = std::max(longest, display_width(line) - 1);
  return longest;
}

const std::vector<std::string> scenario = {"compare", "vit-ti-16"};

TEST(Color, IsForTerminalsOnly) {
  EXPECT_TRUE(has_color(on_terminal(scenario, 120)));
  EXPECT_FALSE(has_color(tidemark_with(scenario).output));
}

TEST(Color, IsOffWhereTheTerminalOrItsUserWantsNone) {
  for (const char* variable : {"NO_COLOR=1", "TERM=dumb", "TERM="}) {
    std::vector<std::string> environment = {variable, "LANG=C.UTF-8"};
    if (!environment[0].starts_with("TERM")) environment.emplace_back("TERM=xterm");
    EXPECT_FALSE(has_color(on_terminal(scenario, 120, environment))) << variable;
  }
  EXPECT_TRUE(has_color(on_terminal(scenario, 120, {"NO_COLOR=", "TERM=xterm"})));
}

TEST(Color, FollowsTheOption) {
  EXPECT_TRUE(has_color(tidemark("compare vit-ti-16 --color always").output));
  auto never = scenario;
  never.insert(never.end(), {"--color", "never"});
  EXPECT_FALSE(has_color(on_terminal(never, 120)));
}

TEST(Color, ChangesNoCharacter) {
  std::string colored = tidemark("explain vit-ti-16 --color always").output;
  for (std::size_t at; (at = colored.find('\x1b')) != std::string::npos;)
    colored.erase(at, colored.find('m', at) - at + 1);
  EXPECT_EQ(colored, tidemark("explain vit-ti-16").output);
}

TEST(Width, IsTheTerminals) {
  for (const unsigned short columns : std::vector<unsigned short>{80, 100, 140}) {
    auto plain = scenario;
    plain.insert(plain.end(), {"--color", "never"});
    const std::string text = on_terminal(plain, columns);
    EXPECT_LE(longest_table_line(text), columns) << text;
  }
}

TEST(Width, ThatIsTooSmallAnnouncesWhatIsLeftOut) {
  const Outcome narrow =
      tidemark("compare vit-ti-16", {.environment = {"COLUMNS=60", "LANG=C.UTF-8"}});
  EXPECT_NE(narrow.output.find("(left out of 60 columns: "), std::string::npos) << narrow.output;
  const Outcome wide =
      tidemark("compare vit-ti-16", {.environment = {"COLUMNS=180", "LANG=C.UTF-8"}});
  EXPECT_EQ(wide.output.find("left out of"), std::string::npos);
}

TEST(Width, OfAnyKindIsSurvived) {
  for (const char* columns : {"COLUMNS=0", "COLUMNS=1", "COLUMNS=-3", "COLUMNS=x", "COLUMNS=41",
                              "COLUMNS=99999999999999999999"})
    for (const char* line : {"compare vit-ti-16 --units", "explain vit-ti-16", "devices h100"})
      EXPECT_EQ(tidemark(line, {.environment = {columns}}).exit_code, 0) << columns << line;
}

TEST(Characters, AreAsciiOutsideOfUnicodeLocales) {
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{}, {"LC_ALL=C", "LANG=C.UTF-8"}, {"LANG=de_DE.ISO-8859-1"}})
    for (const char* line : {"compare swin-t", "explain swin-t --strategy checkpoint", "devices"}) {
      const std::string text = tidemark(line, {.environment = environment}).output;
      EXPECT_TRUE(std::ranges::all_of(text, [](char c) {
        return c == '\n' || (c >= 32 && c < 127 && c != '?');
      })) << text;
    }
}

TEST(Characters, OfBothKindsTakeTheSameRoom) {
  const std::string unicode = tidemark("explain vit-ti-16").output;
  const std::string ascii = tidemark("explain vit-ti-16", {.environment = {}}).output;
  EXPECT_EQ(display_width(unicode), ascii.size());
  EXPECT_EQ(to_ascii(unicode), ascii);
}

TEST(Progress, IsShownOnTerminalsAndLeavesNoTrace) {
  const std::string text = on_terminal(scenario, 120);
  EXPECT_NE(text.find(" of 13 strategies"), std::string::npos);
  auto quiet = scenario;
  quiet.emplace_back("-q");
  EXPECT_EQ(on_terminal(quiet, 120).find(" of 13 strategies"), std::string::npos);
  EXPECT_EQ(tidemark_with(scenario).errors, "");
  EXPECT_NE(on_terminal({"plan", "vit-ti-16", "--front"}, 120).find("of 24 points of the front"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark::cli::terminal_test
