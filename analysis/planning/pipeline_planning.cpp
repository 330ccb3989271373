// What stages recompute lengthens their backwards alone, and no backward that is longer lets the
// pipeline be faster. So the fastest plan of each stage by itself is part of the fastest of all,
// and bounds of each make a bound for all on the pipeline's clock.
#include "analysis/planning/pipeline_planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/pipeline_fronts.h"
#include "analysis/step_times.h"
#include "base/error.h"
#include "simulator/plan_json.h"

namespace tidemark {
namespace {

// What is asked for; of a stage without such a plan nothing.
std::vector<std::optional<FoundPlan>> plans_for(const StageSearches& searches,
                                                const Planning& planning) {
  std::vector<std::optional<FoundPlan>> found(searches.size());
  if (const std::optional<double>& slowdown = planning.request.max_slowdown) {
    const auto vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
    const std::optional<FoundPlans> plans =
        searches.not_longer(Nanoseconds(static_cast<std::int64_t>(vanilla * (1 + *slowdown))));
    if (plans) found.assign(plans->begin(), plans->end());
    return found;
  }
  for (std::size_t s = 0; s < found.size(); ++s) found[s] = plan_for(searches[s], planning);
  return found;
}

/// A stage's passes, all micro-batches, of the reference, which keeps everything but what
/// tensor-parallel ranks have gathered.
struct StageBusy {
  std::vector<ChunkTimes> chunks;
  Nanoseconds more{};  ///< that its backwards take at least, by its bound; less than 0: a plan may
                       ///< keep what they gather again
  Nanoseconds behind{};
};

std::vector<StageBusy> busy_of(const Planning& planning, const RankEvaluations& vanilla) {
  std::vector<StageBusy> stages;
  for (std::size_t s = 0; s < vanilla.classes.size(); ++s) {
    const Evaluation& made = vanilla.classes[s];
    const StepTimes times = times_of(*made.planned.trace, made.schedule, made.timeline);
    stages.push_back({times.chunks, planning.stages[s].lower_bound - times.duration, times.behind});
  }
  return stages;
}

Nanoseconds clock_of_single_chunks(const StepOptions& step, const std::vector<StageBusy>& stages) {
  const std::int64_t batches = step.accumulate.count;
  std::vector<ChunkTimes> chunks;
  for (const StageBusy& stage : stages) {
    const ChunkTimes& all = stage.chunks.front();
    const Nanoseconds backward = std::max(Nanoseconds{}, all.backward + stage.more);
    chunks.push_back({all.forward / batches, backward / batches});
  }
  return run_pipeline(step.schedule.value_or(PipelineSchedule()), chunks, batches).total;
}

// Which of a stage's chunks recompute, or gather nothing again, is for the plan to say. But before
// its first pass those before it have theirs, and so they have behind its last one.
Nanoseconds clock_of_chunks(const StepOptions& step, const std::vector<StageBusy>& stages) {
  const std::int64_t batches = step.accumulate.count;
  Nanoseconds most{}, around{};
  for (const StageBusy& stage : stages) {
    Nanoseconds busy = stage.more;
    for (const ChunkTimes& chunk : stage.chunks) busy += chunk.forward + chunk.backward;
    most = std::max(most, around + busy);
    const ChunkTimes& first = stage.chunks.front();
    const Nanoseconds less = std::min(Nanoseconds{}, stage.more);
    around += (first.forward + std::max(Nanoseconds{}, first.backward + less)) / batches;
  }
  return most;
}

// Each stage is busy in its backwards at least for what its bound is above the reference, or below.
Nanoseconds bound_of_all(const Planning& planning, const RankEvaluations& vanilla) {
  const StepOptions& step = planning.trace->step;
  const std::vector<StageBusy> stages = busy_of(planning, vanilla);
  Nanoseconds behind{};
  for (const StageBusy& stage : stages) behind = std::max(behind, stage.behind);
  if (stages.front().chunks.size() == 1) return clock_of_single_chunks(step, stages) + behind;
  const Nanoseconds clock = clock_of_chunks(step, stages);
  const bool may_be_shorter = std::ranges::any_of(
      stages, [](const StageBusy& stage) { return stage.more < Nanoseconds{}; });
  return (may_be_shorter ? clock : std::max(vanilla.pipeline.total, clock)) + behind;
}

void certify(const StageSearches& searches, Planning& planning) {
  const Bytes bytes = planning.request.max_slowdown
                          ? most_measured(planning.stages, planning.request.measure)
                          : planning.budget;
  for (std::size_t s = 0; s < searches.size(); ++s)
    planning.stages[s].lower_bound =
        searches[s].lower_bound(bytes.count, 0, planning.stages[s].joins_blocks);
  planning.lower_bound =
      bound_of_all(planning, searches.evaluated(parse_strategy(reference_strategy().name)));
  planning.gap = static_cast<double>(planning.comparison.rows.back().step.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, planning.lower_bound.count())) -
                 1;
}

void describe(const RankEvaluations& made, Planning& planning) {
  const std::string title = title_of(planning);
  for (StagePlan& stage : planning.stages) {
    stage.planned.plan.strategy = title;
    planning.front_size = std::max(planning.front_size, stage.front_size);
    planning.joins_blocks = planning.joins_blocks || stage.joins_blocks;
  }
  const StagePlan& shown =
      planning.stages[shown_rank(made, planning.comparison.scenario.step.rank)];
  planning.comparison.rows.push_back(shown.report);
  planning.comparison.rows.back().strategy = title;
  add_ratios(planning.comparison.rows);
  planning.planned = shown.planned;
  planning.binding = shown.binding;
  planning.rest = shown.rest;
}

std::string text_of(const PlannedStep& planned, const std::vector<StagePlan>& stages) {
  if (stages.empty()) return write_plan(planned);
  std::vector<PlannedStep> steps;
  for (const StagePlan& stage : stages) steps.push_back(stage.planned);
  return write_plan(steps);
}

}  // namespace

void refuse_for_stages(const StepOptions& step, const PlanRequest& request) {
  const PipelineSchedule schedule = step.schedule.value_or(PipelineSchedule());
  if (schedule.splits_backward())
    throw UsageError(fmt::format(
        "plans are made for stages whose backwards are whole, not for --schedule {}, which keeps "
        "operands for gradients of weights (1f1b, gpipe and interleaved do not)",
        to_text(schedule)));
  if (class_name(request.allowed) != to_string(Allowed::Exact))
    throw UsageError(
        fmt::format("--allow {}: stages of a pipeline keep or recompute (leave it out)",
                    class_name(request.allowed)));
  if (request.lists_forms)
    throw UsageError("--forms: not for a pipeline, whose stages have a plan each (leave it out)");
}

void plan_stages(const PlanWatch& watch, Planning& planning) {
  const std::vector<std::shared_ptr<const Trace>> traces = traces_of(planning.comparison.scenario);
  planning.trace = traces.front();
  const auto begin = std::chrono::steady_clock::now();
  const StageSearches searches(traces, planning, watch);
  const std::vector<std::optional<FoundPlan>> found = plans_for(searches, planning);
  planning.solve = std::chrono::steady_clock::now() - begin;
  FoundPlans plans = searches.smallest();
  for (std::size_t s = 0; s < plans.size(); ++s) plans[s] = found[s].value_or(plans[s]);
  const RankEvaluations made = searches.evaluated(plans);
  planning.stages = searches.described(plans, made);
  for (std::size_t s = 0; s < plans.size(); ++s)
    planning.stages[s].is_feasible = found[s].has_value();
  planning.feasible = std::ranges::all_of(planning.stages, &StagePlan::is_feasible);
  describe(made, planning);
  certify(searches, planning);
  if (planning.request.front_points > 0)
    planning.fronts = {front_of_stages(searches, planning, watch)};
}

std::string plan_text(const Planning& planning) {
  return text_of(planning.planned, planning.stages);
}

std::string plan_text(const FrontPoint& point) { return text_of(point.planned, point.stages); }

}  // namespace tidemark
