// Plans within budgets, judged by the whole simulation and by the strategies that have names.
#include "analysis/planning/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/host_copies.h"
#include "analysis/planning/plan_search.h"
#include "simulator/graph/offloaded_values.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::planning_test {
namespace {

using testing::IsEmpty;
using testing::Not;

constexpr std::array models = {"gpt2", "bert-base", "vit-b-16", "swin-t", "mvitv2-t"};

// In any measure; and what the allocator adds to sums is less than searches take it to be.
TEST(Planning, NoBudgetIsExceeded) {
  for (const char* model : models)
    for (const Precision precision : {Precision::Fp32, Precision::AmpFp16, Precision::Bf16})
      for (const Measure measure : {Measure::Allocated, Measure::Reserved, Measure::Planned}) {
        const Scenario scenario = planned_scenario(model, precision);
        const PlanSearch search(plan_step(trace_of(scenario), parse_strategy("vanilla")),
                                scenario.device, memory_budget_of(scenario), measure);
        const std::int64_t most = search.bytes_of(search.planner().size() - 1).count;
        for (const std::int64_t share : {47, 66, 88}) {
          const Bytes budget{most * share / 100};
          const auto point = search.within(budget, false);
          if (!point) continue;
          ASSERT_LE(search.bytes_of(*point), budget) << model << " " << share;
          if (measure != Measure::Allocated) continue;
          const auto nearly =
              search.planner().within(budget.count - budget.count / most_beyond_sums);
          ASSERT_GE(*point, nearly.value_or(0)) << model << " " << share;
        }
      }
}

Scenario replicated(std::string_view model, Precision precision, std::string_view shard,
                    std::string_view mesh) {
  Scenario scenario = planned_scenario(model, precision);
  scenario.step.mesh = parse_mesh(mesh);
  scenario.step.shard = parse_sharding(shard);
  return scenario;
}

// What replicas exchange is there in the simulation, and in no sum: of neighbouring points the one
// that is faster by its sum may be the slower one. A plan for one budget knows (fastest_near()), so
// that none is slower than the front's for the same bytes.
TEST(PlansOfReplicas, KeepBudgetsOnTheirRank) {
  for (const auto& [model, shard, mesh] :
       {std::tuple{"gpt2", "ddp:bucket-view", "dp=8"}, std::tuple{"gpt2", "fsdp2", "dp=8"},
        std::tuple{"gpt2", "megatron", "dp=4,tp=2"}, std::tuple{"swin-t", "fsdp2", "dp=8"},
        std::tuple{"gpt2", "ddp", "cp=2"}, std::tuple{"gpt2", "fsdp2", "dp=2,cp=4"}}) {
    const Scenario scenario = replicated(model, Precision::AmpBf16, shard, mesh);
    const Planning front = plan_within(scenario, {.front_points = 5});
    const std::vector<FrontPoint>& points = front.fronts.front().points;
    ASSERT_GT(points.size(), 2u) << shard;
    const PlanSearches searches(trace_of(scenario), scenario.device, memory_budget_of(scenario),
                                {});
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto found = searches.within(points[i].budget, false);
      ASSERT_TRUE(found) << model << " " << shard;
      const Report row = searches.report_of(*found);
      ASSERT_LE(row.allocated_peak, points[i].budget) << model << " " << shard;
      ASSERT_LE(row.step, points[i].report.step) << model << " " << shard << " " << i;
      ASSERT_LE(searches.lower_bound(points[i].budget.count, 0, joins_blocks(*found)), row.step)
          << model << " " << shard;
      ASSERT_GT(row.communication.alone.count(), 0) << model << " " << shard;
      if (i == 0) continue;
      ASSERT_GT(points[i].budget, points[i - 1].budget) << model << " " << shard;
      ASSERT_LT(points[i].report.step, points[i - 1].report.step) << model << " " << shard;
    }
  }
}

TEST(PlansOfReplicas, AreNeverSlowerThanANamedStrategyAtItsOwnBytes) {
  for (const char* shard : {"ddp", "fsdp2", "megatron"}) {
    const Scenario scenario = replicated("gpt2", Precision::Bf16, shard, "dp=8");
    for (const char* strategy : {"vanilla", "checkpoint:blocks", "checkpoint:every=3"}) {
      const Report named = report_of(scenario, strategy);
      const Planning planning = plan_within(scenario, {.budget = named.allocated_peak});
      ASSERT_TRUE(planning.feasible) << shard << " " << strategy;
      ASSERT_LE(planning.comparison.rows.back().step, named.step) << shard << " " << strategy;
    }
  }
}

// Where fragmentation decides, no point of the front may fit into a strategy's own bytes.
TEST(Planning, StrategiesAreAmongThePlans) {
  for (const auto& [model, precision, strategy] :
       {std::tuple{"deit-b", Precision::Bf16, "checkpoint:blocks"},
        std::tuple{"swin-b", Precision::AmpBf16, "checkpoint:blocks"},
        std::tuple{"bert-large", Precision::AmpBf16, "checkpoint:every=3"}}) {
    const Scenario scenario = planned_scenario(model, precision);
    const Report named = report_of(scenario, strategy);
    const Planning planning = plan_within(scenario, {.budget = named.allocated_peak});
    ASSERT_TRUE(planning.feasible) << model;
    EXPECT_LE(planning.comparison.rows.back().allocated_peak, named.allocated_peak) << model;
    EXPECT_LE(planning.comparison.rows.back().step, named.step) << model;
    EXPECT_LE(planning.lower_bound, planning.comparison.rows.back().step) << model;
  }
}

TEST(Planning, KeepsEverythingWhereEverythingFits) {
  const Planning planning = plan_within(planned_scenario("gpt2", Precision::Fp32), {});
  EXPECT_TRUE(planning.feasible);
  EXPECT_EQ(planning.comparison.rows.back().step, planning.comparison.rows.front().step);
  EXPECT_EQ(planning.planned.plan.decisions, keep_everything(*planning.planned.trace).decisions);
}

TEST(Planning, SaysWhatHoldsThePeakWhereNoPlanKeepsToTheBudget) {
  const Planning planning = plan_within(planned_scenario("llama-7b", Precision::Bf16, 1),
                                        {.budget = Bytes{std::int64_t{24} << 30}});
  EXPECT_FALSE(planning.feasible);
  EXPECT_EQ(planning.binding, "optimizer step");
  EXPECT_GT(planning.rest, planning.budget);
  const Report& row = planning.comparison.rows.back();
  EXPECT_EQ(row.over_budget, row.allocated_peak - planning.budget);
  EXPECT_THAT(planning.advice, Not(IsEmpty()));
}

// Plans say nothing of options for a peak that strategies do not lower, and so predict none.
TEST(Planning, ConcludesNothing) {
  Scenario scenario = planned_scenario("llama-7b", Precision::Bf16, 1);
  scenario.device = find_device("rtx-4090");
  const Conclusion conclusion = plan_within(scenario, {}).comparison.conclusion;
  EXPECT_EQ(conclusion, Conclusion());
}

// Codes whose ranges are those of the step before cost less time than those that blocks choose
// from.
TEST(Planning, DelayedCodesAreLookedAt) {
  Scenario scenario = planned_scenario("opt-1.3b", Precision::Fp32, 2);
  scenario.step.tuning = parse_tuning("lora:r=8,targets=q,v");
  const Report delayed = report_of(scenario, "mesa:delayed");
  const Planning planning = plan_within(
      scenario, {.budget = delayed.allocated_peak, .allowed = {Allowed::Exact, Allowed::Lossy}});
  ASSERT_TRUE(planning.feasible);
  EXPECT_LE(planning.comparison.rows.back().step, delayed.step);
  EXPECT_LE(planning.lower_bound, planning.comparison.rows.back().step);
  const auto delayed_text = [](const PlanGroup& group) {
    return std::ranges::any_of(group.decided, [](const PlanGroup::Decided& decided) {
      return action_text(decided) == "quantize, 8 bits, delayed";
    });
  };
  EXPECT_TRUE(std::ranges::any_of(planning.groups, delayed_text));
}

TEST(Planning, LeastMemoryWithinATime) {
  const Planning planning =
      plan_within(planned_scenario("gpt2", Precision::Fp32), {.max_slowdown = 0.05});
  const auto& rows = planning.comparison.rows;
  ASSERT_TRUE(planning.feasible);
  EXPECT_LE(*rows.back().time_ratio, 1.05);
  EXPECT_GT(*rows.back().time_ratio, 1.04);
  EXPECT_LT(*rows.back().memory_ratio, 0.7);
}

// Recomputing saves nothing where the optimizer's step holds the peak, so nothing is recomputed.
TEST(Planning, LeastMemoryWithinATimeWastesNoTime) {
  const Planning planning =
      plan_within(planned_scenario("llama-7b", Precision::Bf16, 1), {.max_slowdown = 0.2});
  const auto& rows = planning.comparison.rows;
  ASSERT_TRUE(planning.feasible);
  EXPECT_EQ(planning.binding, "optimizer step");
  EXPECT_LE(rows.back().allocated_peak, rows.front().allocated_peak);
  EXPECT_EQ(rows.back().step, rows.front().step);
}

// Whole blocks cost more than the right tensors of each, and the proof says so.
TEST(Planning, WholeBlocksAreARestriction) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Report vanilla = report_of(scenario, "vanilla");
  const Bytes budget{vanilla.allocated_peak.count * 6 / 10};
  const Planning tensors = plan_within(scenario, {.budget = budget});
  const Planning blocks = plan_within(scenario, {.budget = budget, .form = PlanForm::Blocks});
  ASSERT_TRUE(tensors.feasible && blocks.feasible);
  EXPECT_LE(blocks.comparison.rows.back().allocated_peak, budget);
  EXPECT_GT(blocks.comparison.rows.back().step, tensors.comparison.rows.back().step);
  EXPECT_LE(blocks.lower_bound, blocks.comparison.rows.back().step);
  const Report all = report_of(scenario, "checkpoint:blocks");
  EXPECT_LT(blocks.comparison.rows.back().step, all.step);
  const auto& plan = blocks.planned.plan;
  EXPECT_LT(plan.regions.size(), 12u);
  for (const Region& region : plan.regions) {
    const auto& found = blocks.planned.trace->blocks;
    EXPECT_TRUE(std::ranges::any_of(found, [&](const Block& block) {
      return block.begin == region.begin && block.end == region.end;
    }));
  }
}

// Under autocast, too, where wrapping a block lets go of casts that stay to the end of the forward.
TEST(Planning, SomeBlocksAreWrappedUnderAutocast) {
  const Scenario scenario = planned_scenario("gpt2", Precision::AmpBf16);
  const Bytes most = report_of(scenario, "vanilla").allocated_peak;
  const Bytes least = report_of(scenario, "checkpoint:blocks").allocated_peak;
  std::size_t wrapped = 12;
  for (const std::int64_t share : {10, 40, 70, 90}) {
    const Bytes budget{least.count + (most.count - least.count) * share / 100};
    const Planning planning = plan_within(scenario, {.budget = budget, .form = PlanForm::Blocks});
    ASSERT_TRUE(planning.feasible) << share;
    EXPECT_LE(planning.comparison.rows.back().allocated_peak, budget) << share;
    EXPECT_LT(planning.planned.plan.regions.size(), wrapped) << share;
    wrapped = planning.planned.plan.regions.size();
  }
  EXPECT_GT(wrapped, 0u);
}

TEST(Planning, CodesWhereThatIsAllowed) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Report mesa = report_of(scenario, "mesa");
  const auto plan = [&](std::vector<Allowed> allowed) {
    return plan_within(scenario, {.budget = mesa.allocated_peak, .allowed = std::move(allowed)});
  };
  const Planning exact = plan({Allowed::Exact}), lossy = plan({Allowed::Lossy}),
                 anything = plan({Allowed::Anything});
  const auto step = [](const Planning& planning) { return planning.comparison.rows.back().step; };
  ASSERT_TRUE(exact.feasible && lossy.feasible && anything.feasible);
  EXPECT_LE(lossy.comparison.rows.back().allocated_peak, mesa.allocated_peak);
  // Mesa codes blocks' inputs, too, which plans keep or make again: 0.28 % measured.
  EXPECT_LE(static_cast<double>(step(lossy).count()),
            1.003 * static_cast<double>(mesa.step.count()));
  EXPECT_LT(step(lossy), step(exact));
  EXPECT_LT(step(anything), step(lossy));
  EXPECT_EQ(fewest_bits(exact.planned.plan), 0);
  EXPECT_EQ(fewest_bits(lossy.planned.plan), 8);
  EXPECT_EQ(exact.comparison.rows.back().caution, "");
  EXPECT_NE(lossy.comparison.rows.back().caution, "");
}

// Copies beside the step take the place of recomputation, as far as the link carries them.
TEST(Planning, OffloadsWhereThatIsFaster) {
  const Scenario scenario = offload_scenario();
  const Bytes budget = gib(12);
  const Planning exact = plan_within(scenario, {.budget = budget});
  const Planning both = plan_within(scenario, {.budget = budget, .allowed = {Allowed::Offload}});
  const Report &kept = exact.comparison.rows.back(), &offloaded = both.comparison.rows.back();
  ASSERT_TRUE(exact.feasible && both.feasible);
  EXPECT_LE(offloaded.allocated_peak, budget);
  EXPECT_LT(offloaded.step, kept.step);
  EXPECT_GT(offloaded.pinned, Bytes{});
  EXPECT_EQ(kept.pinned, Bytes{});
  EXPECT_LT(both.lower_bound, exact.lower_bound);
  EXPECT_GE(both.gap, 0);
  // Not all of it where the host has less.
  const Bytes less{offloaded.pinned.count / 2};
  const Planning half =
      plan_within(scenario, {.budget = budget, .allowed = {Allowed::Offload}, .host_budget = less});
  ASSERT_TRUE(half.feasible);
  EXPECT_LE(half.comparison.rows.back().pinned, less);
  EXPECT_LE(half.comparison.rows.back().step, kept.step);
}

// Copies first come, first served leave the link to nobody's window: no search of windows is as
// fast. Budgets of the device and of the host hold, and parts say all that leaves.
TEST(Planning, FillsTheLinkToTheHost) {
  Scenario swin = planned_scenario("swin-t", Precision::Fp32, 64);
  swin.device = find_device("rtx-4090");
  for (const Scenario& scenario : {offload_scenario(), swin}) {
    const double link = scenario.device.host_link_bytes_per_second * 1e-9;
    const PlanSearch exact(plan_step(trace_of(scenario), parse_strategy("vanilla")),
                           scenario.device, memory_budget_of(scenario), Measure::Allocated);
    const PlanSearch filled = exact.with_filled_link(std::nullopt);
    const Bytes host{256 << 20};
    const PlanSearch less = exact.with_filled_link(host);
    const std::int64_t most = exact.bytes_of(exact.planner().size() - 1).count;
    for (const std::int64_t share : {45, 60, 80}) {
      const Bytes budget{most * share / 100};
      const auto point = filled.within(budget, false), kept = exact.within(budget, false);
      ASSERT_TRUE(point && kept) << scenario.model.name << " " << share;
      ASSERT_LE(filled.bytes_of(*point), budget) << scenario.model.name << " " << share;
      ASSERT_GE(filled.time_of(*point).count(),
                exact.planner().lower_bound_of_joined(budget.count, link));
      for (const double beyond : {1.0, 0.0}) {
        const PlanSearch windows = exact.with_offload(beyond, std::nullopt);
        const auto found = windows.within(budget, false);
        ASSERT_TRUE(found);
        EXPECT_LT(filled.time_of(*point), windows.time_of(*found))
            << scenario.model.name << " " << share << " " << beyond;
      }
      const auto few = less.within(budget, false);
      ASSERT_TRUE(few);
      EXPECT_LE(host_copies_peak(lower(less.step_at(*few))), host);
      EXPECT_LE(filled.time_of(*point), less.time_of(*few));
      EXPECT_LT(less.time_of(*few), exact.time_of(*kept));
      std::int64_t said = 0, done = 0;
      for (const Planner::Part& part : filled.parts_at(*point)) said += part.entry->offloaded;
      const PlannedStep step = filled.step_at(*point);
      for (std::size_t t = 0; t < step.plan.decisions.size(); ++t)
        if (step.plan.decisions[t].action == Action::Offload)
          done += rounded(size(step.trace->tensors[t]));
      EXPECT_EQ(said, done) << scenario.model.name << " " << share;
      EXPECT_GT(said, host.count);
    }
  }
}

// Where that is not the fastest, it keeps nobody from finding what is, but for the little that
// searches of windows leave out by each other's sums.
TEST(Planning, IsNeverSlowerForFillingTheLink) {
  Scenario ranks = planned_scenario("gpt2", Precision::Bf16);
  ranks.step.mesh = parse_mesh("tp=4");
  for (const auto& [scenario, mib] :
       {std::pair{ranks, std::int64_t{948}}, {ranks, 1338}, {offload_scenario(), 12 << 10}}) {
    const Bytes budget{mib << 20};
    const PlanSearches searches(trace_of(scenario), scenario.device, memory_budget_of(scenario),
                                {.allowed = {Allowed::Offload}});
    const auto found = searches.within(budget, false);
    ASSERT_TRUE(found) << mib;
    const PlanSearch exact(plan_step(trace_of(scenario), parse_strategy("vanilla")),
                           scenario.device, memory_budget_of(scenario), Measure::Allocated);
    for (const double beyond : {1.0, 0.5, 0.25, 0.0}) {
      const PlanSearch windows = exact.with_offload(beyond, std::nullopt);
      const auto point = windows.within(budget, false);
      ASSERT_TRUE(point) << mib;
      EXPECT_LE(static_cast<double>(found->search->time_of(found->point).count()),
                1.001 * static_cast<double>(windows.time_of(*point).count()))
          << mib << " " << beyond;
    }
  }
}

// Beside a second stream that recovers, too.
TEST(Planning, FillsTheLinkBesideTwoStreams) {
  const Scenario scenario = planned_scenario("gpt2", Precision::AmpBf16, 16);
  const PlanSearch exact(plan_step(trace_of(scenario), parse_strategy("vanilla")), scenario.device,
                         memory_budget_of(scenario), Measure::Allocated, {.overlaps = true});
  const PlanSearch filled =
      exact.with_filled_link(std::nullopt).with_overlap(Resource::Time, most_lanes);
  const double link = scenario.device.host_link_bytes_per_second * 1e-9;
  const Bytes budget = gib(18);
  const auto point = filled.within(budget, false);
  ASSERT_TRUE(point);
  const PlannedStep step = filled.step_at(*point);
  EXPECT_TRUE(step.plan.overlap && offloads(step.plan));
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(step)), IsEmpty());
  EXPECT_LE(filled.bytes_of(*point), budget);
  EXPECT_LE(exact.planner().lower_bound_of_streams(budget.count, link, true),
            filled.time_of(*point).count());
  EXPECT_LT(filled.time_of(*point), exact.with_filled_link(std::nullopt).time_of(*point));
}

// What copies add is never less than nothing: who takes longer by sums alone need not be simulated.
TEST(Planning, SumsSayTheLeastThatAPlanTakes) {
  for (const char* model : {"gpt2", "swin-t"}) {
    const Scenario scenario = planned_scenario(model, Precision::AmpBf16);
    const PlanSearch exact(plan_step(trace_of(scenario), parse_strategy("vanilla")),
                           scenario.device, memory_budget_of(scenario), Measure::Allocated);
    // Checkpoints of one, two, … blocks; then offload, and checkpoint+offload, which joins no
    // blocks.
    const std::array searches = {std::pair{exact, 4u},
                                 std::pair{exact.with_offload(0.5, std::nullopt), 2u}};
    for (const auto& [search, least] : searches) {
      const Planner& planner = search.planner();
      std::vector<Plan> named;
      for (std::size_t point = 0; point < planner.size() + planner.named();
           point += point < planner.size() ? 1 + planner.size() / 16 : 1) {
        EXPECT_LE(planner.least_time(point), search.time_of(point).count()) << model << point;
        if (point >= planner.size()) named.push_back(planner.plan_at(point));
      }
      EXPECT_GE(planner.named(), least) << model;
      for (std::size_t i = 0; i < named.size(); ++i)
        EXPECT_EQ(std::ranges::count(named, named[i]), 1) << model << i;
    }
  }
}

TEST(Planning, FrontFallsInTimeAsMemoryRises) {
  const Planning planning =
      plan_within(planned_scenario("bert-base", Precision::Fp32), {.front_points = 20});
  ASSERT_EQ(planning.fronts.size(), 1u);
  const std::vector<FrontPoint>& front = planning.fronts.front().points;
  ASSERT_GT(front.size(), 10u);
  EXPECT_LE(front.size(), planning.front_size);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_GT(front[i].budget, front[i - 1].budget);
    EXPECT_LT(front[i].report.step, front[i - 1].report.step);
  }
}

TEST(Planning, GroupsNameBlocksAndWhatTheySave) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Report vanilla = report_of(scenario, "vanilla");
  const Planning planning =
      plan_within(scenario, {.budget = Bytes{vanilla.allocated_peak.count * 6 / 10}});
  std::size_t blocks = 0;
  Nanoseconds extra{};
  for (const PlanGroup& group : planning.groups) {
    if (group.is_block) blocks += group.stages;
    extra += group.extra;
  }
  EXPECT_EQ(blocks, 12u);
  const Nanoseconds slower = planning.comparison.rows.back().step - vanilla.step;
  EXPECT_NEAR(static_cast<double>(extra.count()), static_cast<double>(slower.count()), 1e4);
}

}  // namespace
}  // namespace tidemark::planning_test
