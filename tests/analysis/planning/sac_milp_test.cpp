// PyTorch's sac_milp beside the planner, on the same networks in the same simulator: its decisions
// are data (tests/reference), docs/planning.md shows the table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/analysis/planning/saved_set_plan.h"
#include "tests/analysis/planning/saved_sets_file.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::sac_milp_test {
namespace {

using Json = nlohmann::ordered_json;

// What a block that is wrapped makes goes, but for what its policy saves and for what others read;
// all else stays.
std::set<std::string> staying(const Trace& trace, const Json& point) {
  std::set<std::string> names = saved_of(point);
  const std::set<int> wrapped = blocks_of_ranges(point["wrapped"].get<std::string>());
  std::map<TensorId, std::int32_t> made_in;
  for (const Op& op : trace.ops) {
    for (const TensorId output : trace.outputs(op)) {
      made_in[output] = op.block;
      if (!wrapped.contains(op.block)) names.insert(trace[output].name);
    }
    for (const TensorId input : trace.inputs(op)) {
      const TensorId storage = trace[input].storage;
      if (made_in.contains(storage) && made_in.at(storage) != op.block)
        names.insert(trace[storage].name);
    }
  }
  return names;
}

TEST(SacMilp, IsNeverFasterThanAPlanInItsOwnBytes) {
  const Json reference = Json::parse(text_of_source("tests/reference/sac_milp.json"));
  std::string table;
  for (const Json& network : reference["networks"]) {
    const Scenario scenario = scenario_of_saved(network);
    const auto trace = trace_of(scenario);
    for (const Json& point : network["points"]) {
      const std::string head =
          fmt::format("| {} | {} ", network["model"].get<std::string>(), point["share"].dump());
      if (!point["solved"].get<bool>()) {
        table += head + "| none found | | | |\n";
        continue;
      }
      Plan plan = plan_of_saved(*trace, staying(*trace, point));
      ASSERT_THAT(check(*trace, plan), testing::IsEmpty()) << head;
      const Report theirs = evaluate(*trace, PlannedStep{trace, std::move(plan), {}, {}},
                                     scenario.device, memory_budget_of(scenario))
                                .report;
      const Planning planning =
          plan_within(scenario, {.budget = with_chance(theirs.allocated_peak)});
      ASSERT_TRUE(planning.feasible) << head;
      const Report& ours = planning.comparison.rows.back();
      EXPECT_LE(ours.allocated_peak, with_chance(theirs.allocated_peak));
      EXPECT_LE(ours.step, theirs.step) << head;
      table += head + row_beside(theirs, ours);
    }
  }
  EXPECT_THAT(text_of_source("docs/planning.md"), testing::HasSubstr(table));
}

}  // namespace
}  // namespace tidemark::sac_milp_test
