// The front judged by programs that know nothing of it: the same choices as a mixed-integer linear
// program, given to glpsol, cbc or highs, whichever is installed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "simulator/planner/front.h"
#include "tests/simulator/dice.h"

namespace tidemark::front_milp_test {
namespace {

using Menus = std::vector<std::vector<Choice>>;

std::string signed_term(std::int64_t factor, const std::string& name) {
  return fmt::format(" {} {} {}\n", factor < 0 ? '-' : '+', std::abs(factor), name);
}

// x_j_p = 1: stage j, and as many behind it as the choice spans, do choice p. Each stage is decided
// about once; where a choice begins, its need fits beside what those before it keep. Errors of all
// that is chosen stay within a bound.
std::string program_of(const Menus& menus, std::int64_t room, std::int64_t most_error) {
  const auto name = [](std::size_t stage, std::size_t choice) {
    return fmt::format("x_{}_{}", stage, choice);
  };
  std::string text = "Minimize\n time:\n", binaries;
  for (std::size_t j = 0; j < menus.size(); ++j)
    for (std::size_t p = 0; p < menus[j].size(); ++p) {
      text += signed_term(menus[j][p].time, name(j, p));
      binaries += " " + name(j, p) + "\n";
    }
  text += "Subject To\n";
  for (std::size_t stage = 0; stage < menus.size(); ++stage) {
    text += fmt::format(" once_{}:\n", stage);
    for (std::size_t j = 0; j <= stage; ++j)
      for (std::size_t p = 0; p < menus[j].size(); ++p)
        if (j + menus[j][p].span > stage) text += signed_term(1, name(j, p));
    text += " = 1\n";
    text += fmt::format(" room_{}:\n", stage);
    for (std::size_t j = 0; j < stage; ++j)
      for (std::size_t p = 0; p < menus[j].size(); ++p)
        text += signed_term(menus[j][p].kept, name(j, p));
    for (std::size_t p = 0; p < menus[stage].size(); ++p)
      text += signed_term(menus[stage][p].need, name(stage, p));
    text += fmt::format(" <= {}\n", room);
  }
  text += " error:\n";
  for (std::size_t j = 0; j < menus.size(); ++j)
    for (std::size_t p = 0; p < menus[j].size(); ++p)
      text += signed_term(menus[j][p].error, name(j, p));
  text += fmt::format(" <= {}\n", most_error);
  return text + "Binary\n" + binaries + "End\n";
}

struct Solver {
  const char* program;
  const char* command;  ///< {0} the problem, {1} where the answer goes
  const char* answer;   ///< what stands before the number
};
constexpr Solver solvers[] = {
    {"glpsol", "glpsol --lp {0} -o {1} > /dev/null", "Objective:  time = "},
    {"cbc", "cbc {0} solve solution {1} > /dev/null", "objective value "},
    {"highs", "highs --solution_file {1} {0} > /dev/null", "Objective "}};

const Solver* installed_solver() {
  for (const Solver& solver : solvers)
    if (std::system(fmt::format("command -v {} > /dev/null", solver.program).c_str()) == 0)
      return &solver;
  return nullptr;
}

std::string read_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The least time, or nothing if the solver finds none.
std::optional<double> solve(const Solver& solver, const std::string& program) {
  // Several of these tests run at once, in one folder.
  const std::string own = fmt::format("{}front_milp_{}", testing::TempDir(), getpid());
  const std::string problem = own + ".lp", answer = own + ".txt";
  std::ofstream(problem) << program;
  std::ofstream(answer) << "";
  const std::string command = fmt::format(fmt::runtime(solver.command), problem, answer);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  const std::string text = read_text(answer);
  std::filesystem::remove(problem), std::filesystem::remove(answer);
  const bool is_empty = text.find("EMPTY") != std::string::npos ||
                        text.find("UNDEFINED") != std::string::npos ||
                        text.find("nfeasible") != std::string::npos;
  const std::size_t at = text.find(solver.answer);
  if (is_empty || at == std::string::npos) return std::nullopt;
  return std::strtod(text.c_str() + at + std::string_view(solver.answer).size(), nullptr);
}

// Sizes in MiB and times in µs, as blocks have them: keeping much takes no time, keeping little
// takes some, and what is made again is needed beside. Some choices keep codes: in less time, with
// errors.
Menus menus_for_milp(Dice& dice) {
  Menus menus(4 + dice.below(5));
  for (std::size_t j = 0; j < menus.size(); ++j) {
    menus[j].resize(2 + dice.below(8));
    for (Choice& choice : menus[j]) {
      const auto all = static_cast<std::int64_t>(200 + dice.below(400));
      choice.kept = static_cast<std::int64_t>(dice.below(static_cast<std::size_t>(all)));
      choice.need = all + static_cast<std::int64_t>(dice.below(100));
      choice.time = 5 * (all - choice.kept) + static_cast<std::int64_t>(dice.below(500));
      if (dice.below(2) == 0) {
        choice.error = static_cast<std::int64_t>(1 + dice.below(12));
        choice.time = choice.time * (3 + static_cast<std::int64_t>(dice.below(6))) / 10;
      }
      if (&choice != &menus[j].front() && dice.below(4) == 0)
        choice.span = static_cast<std::uint32_t>(1 + dice.below(menus.size() - j));
    }
  }
  return menus;
}

// One bound holds no choice with errors out, one all of them.
class OfAnIntegerProgram : public testing::TestWithParam<std::int64_t> {};

TEST_P(OfAnIntegerProgram, IsTheFront) {
  const Solver* solver = installed_solver();
  if (!solver) GTEST_SKIP() << "none of glpsol, cbc and highs is installed";
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Dice dice(seed);
    const Menus menus = menus_for_milp(dice);
    const std::int64_t most = GetParam();
    const Front front(menus, {most, 128});
    if (front.size() == 0) {
      EXPECT_FALSE(solve(*solver, program_of(menus, 1 << 20, most))) << seed;
      continue;
    }
    ASSERT_TRUE(front.is_exact()) << seed;
    EXPECT_FALSE(solve(*solver, program_of(menus, front[0].room - 1, most))) << seed;
    for (const std::size_t share : {0u, 1u, 2u, 4u}) {
      const std::size_t point = share * (front.size() - 1) / 4;
      for (const std::int64_t more : {0, 3}) {
        const std::int64_t room = front[point].room + more;
        const std::optional<double> time = solve(*solver, program_of(menus, room, most));
        ASSERT_TRUE(time) << solver->program << " seed " << seed;
        EXPECT_EQ(std::llround(*time), front[*front.within(room)].time) << seed << " " << room;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Front, OfAnIntegerProgram, testing::Values(0, 7, 25, 96));

}  // namespace
}  // namespace tidemark::front_milp_test
