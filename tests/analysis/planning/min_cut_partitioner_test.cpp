// torch.compile's own min-cut partitioner beside the planner, on the same networks in the same
// simulator: its saved sets are data (tests/reference), docs/planning.md shows the table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/analysis/planning/saved_set_plan.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::min_cut_partitioner_test {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::string& path) {
  std::ifstream file(TIDEMARK_SOURCE_DIR + ("/" + path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "0-2,5": of these blocks.
void add_blocks(const std::string& name, const std::string& ranges, std::set<std::string>& saved) {
  std::istringstream stream(ranges);
  for (std::string range; std::getline(stream, range, ',');) {
    const std::size_t dash = range.find('-');
    const int first = std::stoi(range),
              last = dash == std::string::npos ? first : std::stoi(range.substr(dash + 1));
    for (int block = first; block <= last; ++block)
      saved.insert(fmt::format("blocks.{}.{}", block, name));
  }
}

std::set<std::string> saved_of(const Json& point) {
  std::set<std::string> saved;
  for (const auto& [name, ranges] : point["blocks"].items()) add_blocks(name, ranges, saved);
  for (const Json& name : point["others"]) saved.insert(name);
  return saved;
}

Scenario scenario_of(const Json& network) {
  Scenario scenario = planned_scenario(network["model"].get<std::string>(), Precision::Fp32,
                                       network["step"]["batch"]);
  scenario.step.dropout = 0;
  return scenario;
}

std::string row_of(const Json& network, const Json& point, const Report& theirs,
                   const Report& ours) {
  const auto time = [](const Report& row) { return static_cast<double>(row.step.count()); };
  const double change = 100 * (time(ours) / time(theirs) - 1);
  const char* sign = change <= -0.05 ? "−" : change >= 0.05 ? "+" : "";
  return fmt::format("| {} | {} | {} | {} | {} | {}{:.1f} % |\n",
                     network["model"].get<std::string>(), point["activation_memory_budget"].dump(),
                     to_text(theirs.allocated_peak), to_text(theirs.step), to_text(ours.step), sign,
                     std::abs(change));
}

// Where the optimizer's step holds the peak, only fragmentation differs from plan to plan: which of
// them fits to the byte is chance.
Bytes with_chance(Bytes bytes) { return bytes + Bytes{bytes.count / 1000}; }

// It also makes a block's input again from what the block before saves for its last norm, in every
// block of BERT; plans do so only within eight blocks that are recovered as one.
constexpr double most_by_borders = 1.006;

TEST(MinCutPartitioner, IsHardlyEverFasterThanAPlanInItsOwnBytes) {
  const Json reference = Json::parse(text_of("tests/reference/min_cut_partitioner.json"));
  std::string table;
  for (const Json& network : reference["networks"]) {
    const Scenario scenario = scenario_of(network);
    const auto trace = trace_of(scenario);
    for (const Json& point : network["points"]) {
      const std::set<std::string> saved = saved_of(point);
      for (const std::string& name : saved)
        ASSERT_TRUE(std::ranges::any_of(trace->tensors, [&](const Tensor& tensor) {
          return tensor.name == name;
        })) << name;
      Plan plan = plan_of_saved(*trace, saved);
      ASSERT_THAT(check(*trace, plan), testing::IsEmpty()) << network["model"] << point.dump();
      const Report theirs = evaluate(*trace, PlannedStep{trace, std::move(plan), {}, {}},
                                     scenario.device, memory_budget_of(scenario))
                                .report;
      const Planning planning =
          plan_within(scenario, {.budget = with_chance(theirs.allocated_peak)});
      ASSERT_TRUE(planning.feasible) << point.dump();
      const Report& ours = planning.comparison.rows.back();
      EXPECT_LE(ours.allocated_peak, with_chance(theirs.allocated_peak));
      const bool has_last_norms = network["model"] == "bert-large";
      EXPECT_LE(static_cast<double>(ours.step.count()),
                (has_last_norms ? most_by_borders : 1) * static_cast<double>(theirs.step.count()))
          << network["model"] << point["activation_memory_budget"];
      table += row_of(network, point, theirs, ours);
    }
  }
  EXPECT_THAT(text_of("docs/planning.md"), testing::HasSubstr(table));
}

}  // namespace
}  // namespace tidemark::min_cut_partitioner_test
