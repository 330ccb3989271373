// Each stage's own step says how long its forward and backward of a micro-batch take; the
// pipeline's clock says when they run. What comes behind the last backward (reductions, the update)
// is added.
#include "analysis/rank_report.h"

#include <algorithm>

#include "analysis/many_batches.h"
#include "analysis/report_totals.h"
#include "base/error.h"
#include "simulator/parallel/rank_trace.h"

namespace tidemark {
namespace {

bool is_tighter(const Report& a, const Report& b) {
  if (a.fits != b.fits) return b.fits;
  return a.allocated_peak > b.allocated_peak;
}

// What is known of all stages, one after the other.
class StageSums {
 public:
  explicit StageSums(const StepOptions& step) : step_(step) {}

  void add(const Report& report, const StepTimes& times) {
    const std::int64_t batches = step_.accumulate.count;
    stages_.push_back({});
    for (const ChunkTimes& of : times.chunks)
      stages_.back().push_back({of.forward / batches, of.backward / batches, of.weights / batches});
    behind_ = std::max(behind_, times.behind);
    busy_flops_ += report.mfu * static_cast<double>(report.step.count());
    if (stages_.size() == 1) first_ = report;
  }

  PipelineTimes run() const {
    const auto schedule = step_.schedule.value_or(PipelineSchedule());
    const auto stages = std::ssize(stages_);
    std::vector<ChunkTimes> in_model;
    for (std::int64_t c = 0; c < stages * schedule.chunks; ++c) {
      const StageChunk at = place_of_chunk(schedule, stages, c);
      in_model.push_back(
          stages_[static_cast<std::size_t>(at.stage)][static_cast<std::size_t>(at.chunk)]);
    }
    return run_pipeline(schedule, in_model, step_.accumulate.count);
  }

  Nanoseconds duration(const PipelineTimes& all) const { return all.total + behind_; }

  /// All take no less: what the last that was added does, without waiting.
  Nanoseconds busy() const {
    Nanoseconds batch{};
    for (const ChunkTimes& of : stages_.back()) batch += of.forward + of.backward + of.weights;
    return batch * step_.accumulate.count + behind_;
  }

  /// The pipeline's time instead of the stage's own.
  void add_pipeline(const PipelineTimes& all, Report& report) const {
    report.step = duration(all);
    const auto total = static_cast<double>(report.step.count());
    const double slower = static_cast<double>(first_.step.count()) / total;
    report.samples_per_second = first_.samples_per_second * slower;
    report.throughput = first_.throughput * slower;
    report.throughput_unit = first_.throughput_unit;
    report.mfu = busy_flops_ / static_cast<double>(stages_.size()) / total;
    report.bubble = all.waits[static_cast<std::size_t>(report.rank->stage)];
  }

 private:
  const StepOptions& step_;
  std::vector<std::vector<ChunkTimes>> stages_;  ///< of one micro-batch, by stage and chunk
  Nanoseconds behind_{};
  double busy_flops_ = 0;
  Report first_;
};

StepTimes times_of(const Evaluation& made) {
  return times_of(*made.planned.trace, made.schedule, made.timeline);
}

// Whose memory is the tightest, and the time of all.
void take_together(const StepOptions& step, RankEvaluations& all) {
  StageSums stages(step);
  for (std::size_t s = 0; s < all.classes.size(); ++s) {
    Evaluation& made = all.classes[s];
    made.report.rank = RankClass{static_cast<std::int64_t>(s)};
    if (is_tighter(made.report, all.classes[all.tightest].report)) all.tightest = s;
    stages.add(made.report, times_of(made));
  }
  all.pipeline = stages.run();
  for (Evaluation& made : all.classes) stages.add_pipeline(all.pipeline, made.report);
}

// `evaluate_one` of each class; the tightest, or `rank`, with the time of all. No other is kept.
template <typename EvaluateOne>
auto evaluate_each(std::span<const std::shared_ptr<const Trace>> traces,
                   std::optional<RankClass> rank, EvaluateOne evaluate_one) {
  if (traces.size() == 1) return evaluate_one(traces.front());
  const auto named = static_cast<std::size_t>(rank ? rank->stage : -1);
  StageSums stages(traces.front()->step);
  std::optional<decltype(evaluate_one(traces.front()))> shown;
  for (std::size_t s = 0; s < traces.size(); ++s) {
    auto made = evaluate_one(traces[s]);
    if (!made.report.applies) return made;
    made.report.rank = RankClass{static_cast<std::int64_t>(s)};
    stages.add(made.report, times_of(made));
    const bool is_shown =
        named < traces.size() ? s == named : !shown || is_tighter(made.report, shown->report);
    if (is_shown) shown = std::move(made);
  }
  stages.add_pipeline(stages.run(), shown->report);
  return std::move(*shown);
}

}  // namespace

// The model is built, and cut for its tp ranks, once for all stages.
std::vector<std::shared_ptr<const Trace>> rank_traces(const Model& model, const StepOptions& step) {
  const std::int64_t stages = step.mesh[Axis::Pipeline];
  if (stages == 1) return {std::make_shared<const Trace>(build_rank_trace(model, step))};
  const Trace whole = cut_for_ranks(build_trace(model, step));
  std::vector<std::shared_ptr<const Trace>> traces;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    Trace own = whole;
    own.step.rank = RankClass{stage};
    traces.push_back(std::make_shared<const Trace>(build_stage_trace(std::move(own))));
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
  if (traces.size() > 1) take_together(traces.front()->step, all);
  return all;
}

RankEvaluations evaluate_all_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                   std::vector<PlannedStep> plans, const Device& device,
                                   const MemoryBudget& budget) {
  CHECK(plans.size() == traces.size());
  RankEvaluations all;
  for (std::size_t s = 0; s < traces.size(); ++s)
    all.classes.push_back(evaluate(*traces[s], std::move(plans[s]), device, budget));
  if (traces.size() > 1) take_together(traces.front()->step, all);
  return all;
}

std::size_t shown_rank(const RankEvaluations& all, const std::optional<RankClass>& named) {
  return named ? static_cast<std::size_t>(named->stage) : all.tightest;
}

Evaluation evaluate_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                          const StrategySpec& strategy, const Device& device,
                          const MemoryBudget& budget, std::optional<RankClass> rank) {
  return evaluate_each(traces, rank, [&](const std::shared_ptr<const Trace>& trace) {
    return evaluate(trace, strategy, device, budget);
  });
}

namespace {

/// All stages, but for what the allocator says.
class TimedStages {
 public:
  explicit TimedStages(std::span<const std::shared_ptr<const Trace>> traces)
      : step_(traces.front()->step), is_piped_(traces.size() > 1), sums_(step_) {}

  void add(TimedStep step) {
    steps_.push_back(std::move(step));
    least_ = std::max(least_, steps_.back().least);
    if (!is_piped_) return;
    StepTotals& totals = steps_.back().totals;
    totals.report.rank = RankClass{std::ssize(steps_) - 1};
    sums_.add(totals.report, totals.times);
  }

  /// Of all, from those that were added.
  Nanoseconds least_time() const {
    return is_piped_ ? sums_.busy() : steps_.front().totals.report.step;
  }
  Bytes least() const { return least_; }

  Nanoseconds run() {
    if (!is_piped_) return steps_.front().totals.report.step;
    pipeline_ = sums_.run();
    pipeline_.passes.clear();
    return sums_.duration(pipeline_);
  }

  // The largest by what they allocate at least is asked first: it leaves the others little to ask.
  Report totals(const MemoryBudget& budget, std::optional<RankClass> rank) {
    std::vector<TimedStep*> order;
    for (TimedStep& of : steps_)
      if (!rank || !is_piped_ || of.totals.report.rank == rank) order.push_back(&of);
    std::ranges::stable_sort(order, std::ranges::greater(), &TimedStep::least);
    TimedStep* shown = nullptr;  // of equal ones the first stage
    for (TimedStep* of : order) {
      const Report* const known = shown ? &shown->totals.report : nullptr;
      const Bytes other = known && known->fits ? known->allocated_peak : Bytes{};
      if (!of->set_memory(budget, other, of->totals)) continue;
      const Report& made = of->totals.report;
      if (!known || is_tighter(made, *known) || (of < shown && !is_tighter(*known, made)))
        shown = of;
    }
    Report report = std::move(shown->totals.report);
    if (is_piped_) sums_.add_pipeline(pipeline_, report);
    return report;
  }

 private:
  const StepOptions step_;
  const bool is_piped_;
  StageSums sums_;
  std::vector<TimedStep> steps_;
  Bytes least_;
  PipelineTimes pipeline_;
};

}  // namespace

std::optional<TimedRanks> timed_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                      const StrategySpec& strategy, const Device& device,
                                      const IsOfInterest& is_wanted) {
  const auto stages = std::make_shared<TimedStages>(traces);
  std::optional<ScriptedStage> last;
  for (const auto& trace : traces) {
    TimedStep step = timed_step(trace, strategy, device, last);
    if (!step.totals.report.applies)
      return TimedRanks{false, {}, {}, [report = step.totals.report](auto...) { return report; }};
    stages->add(std::move(step));
    if (!is_wanted(stages->least_time(), stages->least())) return std::nullopt;
  }
  const Nanoseconds step = stages->run();
  return TimedRanks{true, step, stages->least(),
                    [stages](const MemoryBudget& budget, std::optional<RankClass> rank) {
                      return stages->totals(budget, rank);
                    }};
}

Report totals_of_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                       const StrategySpec& strategy, const Device& device,
                       const MemoryBudget& budget, std::optional<RankClass> rank) {
  return timed_ranks(traces, strategy, device, [](auto...) { return true; })->totals(budget, rank);
}

}  // namespace tidemark
