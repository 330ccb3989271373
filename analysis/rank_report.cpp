// Each stage's own step says how long its forward and backward of a micro-batch take; the
// pipeline's clock says when they run. What comes behind the last backward (reductions, the update)
// is added.
#include "analysis/rank_report.h"

#include <algorithm>

#include "simulator/parallel/rank_trace.h"

namespace tidemark {
namespace {

struct StageTime {
  StageTimes of_batch;
  Nanoseconds behind{};  ///< from the last backward to the end of the step
};

bool is_tighter(const Report& a, const Report& b) {
  if (a.fits != b.fits) return b.fits;
  return a.allocated_peak > b.allocated_peak;
}

// Passes alternate in time: a forward begins at its first op, a backward at its seed, or what
// another stage has sent back.
StageTime stage_time(const Evaluation& made) {
  const std::int64_t batches = made.planned.trace->step.accumulate.count;
  Nanoseconds forward{}, backward{}, begin{}, end{};
  OpId last = no_op;
  bool is_backward = false;
  const auto close = [&](Nanoseconds now) {
    (is_backward ? backward : forward) += now - begin;
    begin = now;
  };
  for (const TimedRun& timed : made.timeline.runs) {
    const Run* run = std::get_if<Run>(&made.schedule.steps[timed.step]);
    if (!run || run->task == Task::Optimizer) continue;
    const bool goes_back = run->task == Task::Backward || run->task == Task::Recompute;
    const bool starts_backward = run->task == Task::Seed || (goes_back && !is_backward);
    const bool starts_forward =
        run->task == Task::Forward && (is_backward || (last != no_op && run->op <= last));
    if (starts_backward || starts_forward) close(timed.begin);
    if (starts_backward || starts_forward) is_backward = starts_backward;
    if (run->task == Task::Forward) last = run->op;
    if (!is_collective(run->task)) end = std::max(end, timed.end);
  }
  close(end);
  return {{forward / batches, backward / batches}, made.timeline.duration - end};
}

// The pipeline's time instead of the stage's own, in the reports of all stages.
PipelineTimes add_pipeline(std::span<Evaluation> stages) {
  const StepOptions& step = stages.front().planned.trace->step;
  std::vector<StageTimes> times;
  Nanoseconds behind{};
  double busy_flops = 0;
  for (const Evaluation& stage : stages) {
    const StageTime time = stage_time(stage);
    times.push_back(time.of_batch);
    behind = std::max(behind, time.behind);
    busy_flops += stage.report.mfu * static_cast<double>(stage.report.step.count());
  }
  PipelineTimes all =
      run_pipeline(step.schedule.value_or(PipelineSchedule()), times, step.accumulate.count);
  const Report first = stages.front().report;
  const Nanoseconds total = all.total + behind;
  const double slower =
      static_cast<double>(first.step.count()) / static_cast<double>(total.count());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Report& report = stages[s].report;
    report.step = total;
    report.samples_per_second = first.samples_per_second * slower;
    report.throughput = first.throughput * slower;
    report.throughput_unit = first.throughput_unit;
    report.mfu =
        busy_flops / static_cast<double>(stages.size()) / static_cast<double>(total.count());
    report.bubble = all.waits[s];
  }
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const Trace>> rank_traces(const Model& model, const StepOptions& step) {
  std::vector<std::shared_ptr<const Trace>> traces;
  StepOptions of_stage = step;
  for (std::int64_t stage = 0; stage < step.mesh[Axis::Pipeline]; ++stage) {
    if (step.mesh[Axis::Pipeline] > 1) of_stage.rank = RankClass{stage};
    traces.push_back(std::make_shared<const Trace>(build_rank_trace(model, of_stage)));
  }
  return traces;
}

RankEvaluations evaluate_all_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                   const StrategySpec& strategy, const Device& device,
                                   const MemoryBudget& budget) {
  RankEvaluations all;
  for (const auto& trace : traces) {
    Evaluation made = evaluate(trace, strategy, device, budget);
    const bool applies = made.report.applies;
    if (!applies) all.classes.clear();
    all.classes.push_back(std::move(made));
    if (!applies) return all;
  }
  if (traces.size() == 1) return all;
  for (std::size_t s = 0; s < traces.size(); ++s) {
    all.classes[s].report.rank = RankClass{static_cast<std::int64_t>(s)};
    if (is_tighter(all.classes[s].report, all.classes[all.tightest].report)) all.tightest = s;
  }
  all.pipeline = add_pipeline(all.classes);
  return all;
}

Evaluation evaluate_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                          const StrategySpec& strategy, const Device& device,
                          const MemoryBudget& budget, std::optional<RankClass> rank) {
  RankEvaluations all = evaluate_all_ranks(traces, strategy, device, budget);
  const auto named = static_cast<std::size_t>(rank ? rank->stage : 0);
  const bool is_named = rank && named < all.classes.size();
  return std::move(all.classes[is_named ? named : all.tightest]);
}

}  // namespace tidemark
