// What stages recompute lengthens their backwards alone, and no backward that is longer lets the
// pipeline be faster. So the fastest plan of each stage by itself is part of the fastest of all,
// and bounds of each make a bound for all on the pipeline's clock.
#include "analysis/planning/pipeline_planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/plan_groups.h"
#include "analysis/planning/plan_searches.h"
#include "analysis/rank_report.h"
#include "analysis/step_times.h"
#include "base/error.h"
#include "simulator/plan_json.h"
#include "simulator/planner/in_flight.h"

namespace tidemark {
namespace {

using Traces = std::vector<std::shared_ptr<const Trace>>;

// Of all that are in flight.
std::vector<PlanGroup> groups_in_flight(const PlanSearch& search, std::size_t point,
                                        std::int64_t in_flight) {
  std::vector<PlanGroup> groups = groups_of(search.planner(), point);
  for (PlanGroup& group : groups) {
    group.saved = Bytes{in_flight * group.saved.count};
    for (PlanGroup::Decided& decided : group.decided)
      decided.bytes = Bytes{in_flight * decided.bytes.count};
  }
  return groups;
}

StagePlan plan_stage(const std::shared_ptr<const Trace>& trace, const PlanWatch& watch,
                     const Planning& planning) {
  const Comparison& comparison = planning.comparison;
  const PlanSearches searches(trace, comparison.scenario.device, comparison.budget,
                              planning.request, watch);
  const std::optional<FoundPlan> found = plan_for(searches, planning);
  const FoundPlan plan = found.value_or(searches.smallest());
  const Planner& planner = plan.search->planner();
  StagePlan stage;
  stage.is_feasible = found.has_value();
  stage.in_flight = in_flight_of(trace->step).others + 1;
  stage.planned = plan.search->step_at(plan.point);
  stage.groups = groups_in_flight(*plan.search, plan.point, stage.in_flight);
  stage.binding = binding_of(planner, plan.point);
  stage.rest = Bytes{planner.rest()};
  stage.front_size = planner.size();
  stage.joins_blocks =
      std::ranges::any_of(stage.groups, [](const PlanGroup& group) { return group.joined > 1; });
  stage.lower_bound = searches.lower_bound(planning.budget.count, 0, stage.joins_blocks);
  return stage;
}

/// The plans as a strategy, as if read from their file.
StrategySpec strategy_of(const Planning& planning, std::string title) {
  StrategySpec spec = read_plan(plan_text(planning), "");
  spec.text = std::move(title);
  return spec;
}

// Of the step: each stage is busy in its backwards at least for what its bound is above vanilla.
Nanoseconds bound_of_all(const Planning& planning, const RankEvaluations& vanilla) {
  const StepOptions& step = planning.trace->step;
  const std::int64_t batches = step.accumulate.count;
  std::vector<ChunkTimes> chunks;
  Nanoseconds behind{};
  for (std::size_t s = 0; s < vanilla.classes.size(); ++s) {
    const Evaluation& made = vanilla.classes[s];
    const StepTimes times = times_of(*made.planned.trace, made.schedule, made.timeline);
    const Nanoseconds more =
        std::max(Nanoseconds{}, planning.stages[s].lower_bound - times.duration);
    const ChunkTimes& all = times.chunks.front();
    chunks.push_back({all.forward / batches, (all.backward + more) / batches});
    behind = std::max(behind, times.behind);
  }
  return run_pipeline(step.schedule.value_or(PipelineSchedule()), chunks, batches).total + behind;
}

void add_row(const RankEvaluations& made, const std::string& title, Planning& planning) {
  for (std::size_t s = 0; s < made.classes.size(); ++s)
    planning.stages[s].report = made.classes[s].report;
  const std::optional<RankClass>& named = planning.comparison.scenario.step.rank;
  const std::size_t shown = named ? static_cast<std::size_t>(named->stage) : made.tightest;
  planning.comparison.rows.push_back(made.classes[shown].report);
  planning.comparison.rows.back().strategy = title;
  add_ratios(planning.comparison.rows);
  planning.planned = planning.stages[shown].planned;
  planning.binding = planning.stages[shown].binding;
  planning.rest = planning.stages[shown].rest;
}

}  // namespace

void refuse_for_stages(const StepOptions& step, const PlanRequest& request) {
  const PipelineSchedule schedule = step.schedule.value_or(PipelineSchedule());
  if (schedule.chunks > 1 || schedule.splits_backward())
    throw UsageError(
        fmt::format("plans are made for stages of one chunk whose backwards are whole, not for "
                    "--schedule {} (1f1b and gpipe have such)",
                    to_text(schedule)));
  if (class_name(request.allowed) != to_string(Allowed::Exact))
    throw UsageError(
        fmt::format("--allow {}: stages of a pipeline keep or recompute (leave it out)",
                    class_name(request.allowed)));
  const auto refuse = [](bool is_asked, std::string_view option) {
    if (is_asked)
      throw UsageError(fmt::format(
          "{}: not for a pipeline, whose stages have a plan each (leave it out)", option));
  };
  refuse(request.max_slowdown.has_value(), "--max-slowdown");
  refuse(request.front_points > 0, "--front (and its picture)");
  refuse(request.lists_forms, "--forms");
}

void plan_stages(const PlanWatch& watch, Planning& planning) {
  const Scenario& scenario = planning.comparison.scenario;
  const Traces traces = traces_of(scenario);
  planning.trace = traces.front();
  const std::string title = title_of(planning);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& trace : traces) {
    planning.stages.push_back(plan_stage(trace, watch, planning));
    planning.stages.back().planned.plan.strategy = title;
    planning.front_size = std::max(planning.front_size, planning.stages.back().front_size);
    planning.joins_blocks = planning.joins_blocks || planning.stages.back().joins_blocks;
  }
  planning.solve = std::chrono::steady_clock::now() - begin;
  planning.feasible = std::ranges::all_of(planning.stages, &StagePlan::is_feasible);
  const auto evaluated = [&](const StrategySpec& strategy) {
    return evaluate_all_ranks(traces, strategy, scenario.device, planning.comparison.budget);
  };
  planning.lower_bound =
      bound_of_all(planning, evaluated(parse_strategy(reference_strategy().name)));
  add_row(evaluated(strategy_of(planning, title)), title, planning);
  planning.gap = static_cast<double>(planning.comparison.rows.back().step.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, planning.lower_bound.count())) -
                 1;
}

std::string plan_text(const Planning& planning) {
  if (planning.stages.empty()) return write_plan(planning.planned);
  std::vector<PlannedStep> steps;
  for (const StagePlan& stage : planning.stages) steps.push_back(stage.planned);
  return write_plan(steps);
}

}  // namespace tidemark
