// What would lower a peak: each row is what the command line would say of those options.
#include "analysis/planning/lever_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::lever_table_test {
namespace {

using testing::IsEmpty;
using testing::Not;

Scenario short_of_memory() {
  Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 16);
  scenario.device = find_device("rtx-4090");
  return scenario;
}

LeverTable levers_of_gpt2() { return try_levers(short_of_memory(), parse_strategy("vanilla")); }

const TriedLever& named(const LeverTable& table, std::string_view name) {
  const auto found = std::ranges::find(table.tried, name, &TriedLever::name);
  EXPECT_NE(found, table.tried.end()) << name;
  return *found;
}

TEST(LeverTable, SaysWhatACommandWould) {
  const Scenario scenario = short_of_memory();
  const LeverTable table = levers_of_gpt2();
  EXPECT_EQ(table.now().allocated_peak, report_of(scenario, "vanilla").allocated_peak);
  EXPECT_EQ(named(table, "checkpoint").report.allocated_peak,
            report_of(scenario, "checkpoint").allocated_peak);
  Scenario chunked = scenario;
  chunked.step.loss = parse_token_loss("chunked:8");
  EXPECT_EQ(named(table, "--loss chunked:8").report.allocated_peak,
            report_of(chunked, "vanilla").allocated_peak);
  for (const TriedLever& lever : table.tried) {
    if (lever.kind != LeverKind::Plan) continue;
    const Planning planned = plan_within(scenario, {.budget = lever.budget});
    EXPECT_EQ(planned.comparison.rows.back().allocated_peak, lever.report.allocated_peak);
    EXPECT_EQ(planned.comparison.rows.back().step, lever.report.step) << lever.name;
  }
}

// Stages wait for each other: an option that makes the optimizer faster takes nothing off that.
TEST(LeverTable, OptionsOfAPipelineAreTriedInIt) {
  Scenario scenario = planned_scenario("gpt2", Precision::Fp32, 1);
  scenario.step.mesh[Axis::Pipeline] = 4, scenario.step.accumulate.count = 8;
  const LeverTable table = try_levers(scenario, parse_strategy("vanilla"));
  const std::vector<Lever> levers = levers_of(scenario);
  for (const std::string option : {"--optimizer-form fused", "--tuning lora:r=8,targets=all"}) {
    const auto lever = std::ranges::find(levers, option, &Lever::option);
    ASSERT_NE(lever, levers.end()) << option;
    Scenario changed = lever->changed;
    changed.strategies = {parse_strategy("vanilla")};
    const Report said = compare(changed).rows.front(), &tried = named(table, option).report;
    EXPECT_EQ(tried.step, said.step) << option;
    EXPECT_EQ(tried.allocated_peak, said.allocated_peak) << option;
    EXPECT_EQ(tried.samples_per_second, said.samples_per_second) << option;
  }
}

// What fits comes first, without a caution before with one, and in each the fastest.
TEST(LeverTable, ListsFirstWhatMakesItFit) {
  const LeverTable table = levers_of_gpt2();
  ASSERT_FALSE(table.now().fits);
  const auto rows = lowering(table, Measure::Allocated);
  ASSERT_GT(rows.size(), 10u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const TriedLever &before = *rows[i - 1], &after = *rows[i];
    EXPECT_GE(before.report.fits, after.report.fits) << after.name;
    if (!after.report.fits) continue;
    EXPECT_LE(before.caution.empty() ? 0 : 1, after.caution.empty() ? 0 : 1) << after.name;
    if (before.caution.empty() == after.caution.empty()) {
      EXPECT_GE(before.report.samples_per_second, after.report.samples_per_second) << after.name;
    }
  }
}

TEST(LeverTable, ListsFirstWhatSavesMostWhereAllFits) {
  Scenario scenario = short_of_memory();
  scenario.device = find_device("a100-80gb");
  const LeverTable table = try_levers(scenario, parse_strategy("vanilla"));
  const auto rows = lowering(table, Measure::Live);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_LE(rows[i - 1]->report.live_peak, rows[i]->report.live_peak) << rows[i]->name;
  for (const TriedLever* row : rows) EXPECT_LT(row->report.live_peak, table.now().live_peak);
}

// Half of the samples take half of the time: a lever's price is that of a sample.
TEST(LeverTable, CountsTheTimeOfASample) {
  const LeverTable table = levers_of_gpt2();
  const TriedLever& half = named(table, "--batch 8 --accumulate 2");
  EXPECT_NEAR(
      time_ratio(half.report, table.now()),
      static_cast<double>(half.report.step.count()) / static_cast<double>(table.now().step.count()),
      1e-9);
  EXPECT_GT(time_ratio(named(table, "checkpoint").report, table.now()), 1.2);
}

TEST(LeverTable, NothingBeatsTheFront) {
  const LeverTable table = levers_of_gpt2();
  const auto front = unbeaten(table, Measure::Allocated);
  ASSERT_THAT(front, Not(IsEmpty()));
  for (const TriedLever* best : front)
    for (const TriedLever& other : table.tried)
      EXPECT_FALSE(other.report.allocated_peak < best->report.allocated_peak &&
                   other.report.samples_per_second > best->report.samples_per_second)
          << other.name << " beats " << best->name;
}

TEST(LeverTable, IsToldAsItGrows) {
  std::vector<std::string_view> next;
  std::size_t known = 0;
  const LeverTable all =
      try_levers(short_of_memory(), parse_strategy("vanilla"), [&](const LeverTable& part) {
        EXPECT_GE(part.tried.size(), known);
        known = part.tried.size();
        next.push_back(part.next);
      });
  EXPECT_THAT(next, testing::ElementsAre("options", "plans", ""));
  EXPECT_EQ(all.tried.size(), known);
  std::size_t asked = 0;
  const LeverTable stopped =
      try_levers(short_of_memory(), parse_strategy("vanilla"), {}, [&] { return ++asked > 3; });
  EXPECT_THAT(stopped.tried, IsEmpty());
  EXPECT_NE(stopped.next, "");
}

// A lever beside mesa changes what it changes: that gradients are approximate is so already.
TEST(LeverTable, IsOfWhateverIsThere) {
  const LeverTable mesa = try_levers(short_of_memory(), parse_strategy("mesa"));
  EXPECT_EQ(mesa.now().strategy, "mesa");
  EXPECT_NE(mesa.now().caution, "");
  EXPECT_EQ(named(mesa, "--loss chunked:8").caution, "");
  for (const TriedLever& lever : mesa.tried) EXPECT_NE(lever.name, "mesa");
  EXPECT_THAT(try_levers(short_of_memory(), parse_strategy("reversible+checkpoint")).tried,
              IsEmpty());
}

TEST(LeverTable, OfManyGpusHasTheirLayout) {
  Scenario scenario = planned_scenario("gpt2", Precision::Bf16);
  scenario.step.mesh = parse_mesh("dp=8");
  const LeverTable table = try_levers(scenario, parse_strategy("vanilla"));
  EXPECT_LT(named(table, "--shard fsdp2").report.allocated_peak, table.now().allocated_peak);
  EXPECT_FALSE(table.plans.points.empty());  // of one rank, beside what it exchanges
}

}  // namespace
}  // namespace tidemark::lever_table_test
