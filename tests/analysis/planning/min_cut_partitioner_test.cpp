// torch.compile's own min-cut partitioner beside the planner, on the same networks in the same
// simulator: its saved sets are data (tests/reference), docs/planning.md shows the table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/saved_set_plan.h"
#include "tests/analysis/planning/saved_sets_file.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::min_cut_partitioner_test {
namespace {

using Json = nlohmann::ordered_json;

// It also makes a block's input again from what the block before saves for its last norm, in every
// block of BERT; plans do so only within eight blocks that are recovered as one.
constexpr double most_by_borders = 1.006;

TEST(MinCutPartitioner, IsHardlyEverFasterThanAPlanInItsOwnBytes) {
  const Json reference = Json::parse(text_of_source("tests/reference/min_cut_partitioner.json"));
  std::string table;
  for (const Json& network : reference["networks"]) {
    const Scenario scenario = scenario_of_saved(network);
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
      table += fmt::format("| {} | {} {}", network["model"].get<std::string>(),
                           point["activation_memory_budget"].dump(), row_beside(theirs, ours));
    }
  }
  EXPECT_THAT(text_of_source("docs/planning.md"), testing::HasSubstr(table));
}

}  // namespace
}  // namespace tidemark::min_cut_partitioner_test
