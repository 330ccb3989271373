// Names in ranges of blocks, and rows of the tables that stand in docs/planning.md.
#include "tests/analysis/planning/saved_sets_file.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark {

std::string text_of_source(const std::string& path) {
  std::ifstream file(TIDEMARK_SOURCE_DIR + ("/" + path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<int> blocks_of_ranges(const std::string& ranges) {
  std::set<int> blocks;
  std::istringstream stream(ranges);
  for (std::string range; std::getline(stream, range, ',');) {
    const std::size_t dash = range.find('-');
    const int first = std::stoi(range),
              last = dash == std::string::npos ? first : std::stoi(range.substr(dash + 1));
    for (int block = first; block <= last; ++block) blocks.insert(block);
  }
  return blocks;
}

std::set<std::string> saved_of(const nlohmann::ordered_json& point) {
  std::set<std::string> saved;
  for (const auto& [name, ranges] : point["blocks"].items())
    for (const int block : blocks_of_ranges(ranges.get<std::string>()))
      saved.insert(fmt::format("blocks.{}.{}", block, name));
  for (const auto& name : point["others"]) saved.insert(name.get<std::string>());
  return saved;
}

Scenario scenario_of_saved(const nlohmann::ordered_json& network) {
  Scenario scenario = planned_scenario(network["model"].get<std::string>(), Precision::Fp32,
                                       network["step"]["batch"]);
  scenario.step.dropout = 0;
  return scenario;
}

std::string row_beside(const Report& theirs, const Report& ours) {
  const auto time = [](const Report& row) { return static_cast<double>(row.step.count()); };
  const double change = 100 * (time(ours) / time(theirs) - 1);
  const char* sign = change <= -0.05 ? "−" : change >= 0.05 ? "+" : "";
  return fmt::format("| {} | {} | {} | {}{:.1f} % |\n", to_text(theirs.allocated_peak),
                     to_text(theirs.step), to_text(ours.step), sign, std::abs(change));
}

}  // namespace tidemark
