// Pairs the passes that a stage's own timeline has with those of the pipeline, and moves each
// moment with the pass that it lies in.
#include "analysis/pipeline_timeline.h"

#include <algorithm>

#include "analysis/step_times.h"

namespace tidemark {
namespace {

/// From [begin, end) of the stage's own time to the pipeline's.
struct Stretch {
  Nanoseconds begin, end, new_begin, new_end;

  Nanoseconds moved(Nanoseconds moment) const {
    const auto length = static_cast<double>(std::max<std::int64_t>(1, (end - begin).count()));
    const double share = static_cast<double>((moment - begin).count()) / length;
    const double passed = share * static_cast<double>((new_end - new_begin).count());
    return new_begin + Nanoseconds{static_cast<std::int64_t>(passed)};
  }
};

StageAction action_of(const TimedPass& pass) { return {.work = pass.work, .chunk = pass.chunk}; }
StageAction action_of(const PipelinePass& pass) {
  return {.work = pass.action.work, .chunk = pass.action.chunk};
}

// Neighbours that do the same work on the same chunk are one turn.
template <typename Pass>
std::vector<std::vector<Pass>> turns_of(const std::vector<Pass>& passes) {
  std::vector<std::vector<Pass>> turns;
  for (const Pass& pass : passes) {
    if (turns.empty() || action_of(turns.back().front()) != action_of(pass)) turns.emplace_back();
    turns.back().push_back(pass);
  }
  return turns;
}

// One for each pass of the pipeline. Passes that the timeline does not tell apart are equal
// parts of their turn.
void add_turn(const std::vector<TimedPass>& own, const std::vector<PipelinePass>& passes,
              std::vector<Stretch>& stretches) {
  const auto count = static_cast<std::int64_t>(passes.size());
  const Nanoseconds first = own.front().begin, all = own.back().end - first;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const bool is_told = own.size() == passes.size();
    stretches.push_back({is_told ? own[i].begin : first + all * number / count,
                         is_told ? own[i].end : first + all * (number + 1) / count, passes[i].begin,
                         passes[i].end});
  }
}

std::vector<Stretch> stretches_of(const std::vector<TimedPass>& own,
                                  const std::vector<PipelinePass>& passes) {
  const auto own_turns = turns_of(own);
  const auto turns = turns_of(passes);
  std::vector<Stretch> stretches;
  if (own_turns.size() != turns.size()) {  // unlike each other: all of it, without its waits
    if (!own.empty() && !passes.empty())
      stretches.push_back(
          {own.front().begin, own.back().end, passes.front().begin, passes.back().end});
    return stretches;
  }
  for (std::size_t i = 0; i < turns.size(); ++i) add_turn(own_turns[i], turns[i], stretches);
  return stretches;
}

class PipelineClock {
 public:
  PipelineClock(std::vector<Stretch> stretches, Nanoseconds total)
      : stretches_(std::move(stretches)), total_(total) {}

  /// Of what begins then: at the border of two passes it belongs to the later one.
  Nanoseconds begin(Nanoseconds moment) const {
    if (moment >= stretches_.back().end) return total_ + (moment - stretches_.back().end);
    const auto later = std::ranges::upper_bound(stretches_.begin() + 1, stretches_.end(), moment,
                                                {}, &Stretch::begin);
    return std::prev(later)->moved(moment);
  }
  /// Of what ends then: it belongs to the earlier one.
  Nanoseconds end(Nanoseconds moment) const {
    if (moment > stretches_.back().end) return total_ + (moment - stretches_.back().end);
    const auto later = std::ranges::lower_bound(stretches_.begin() + 1, stretches_.end(), moment,
                                                {}, &Stretch::begin);
    return std::prev(later)->moved(moment);
  }

 private:
  std::vector<Stretch> stretches_;
  Nanoseconds total_;
};

}  // namespace

Timeline on_pipeline_clock(const Trace& trace, const Schedule& schedule, const Timeline& alone,
                           const std::vector<PipelinePass>& passes, Nanoseconds total,
                           Nanoseconds step) {
  std::vector<Stretch> stretches = stretches_of(passes_of(trace, schedule, alone), passes);
  if (stretches.empty()) return alone;
  const Nanoseconds last_pass = stretches.back().new_end;
  const PipelineClock clock(std::move(stretches), std::max(total, last_pass));
  Timeline made = alone;
  for (TimedRun& run : made.runs) {
    const Nanoseconds begin = clock.begin(run.begin);
    run.end = std::max(begin, clock.end(run.end));
    run.begin = begin;
  }
  Nanoseconds last{};
  for (MemoryEvent& event : made.memory)
    last = event.time =
        std::max(last, event.appears ? clock.begin(event.time) : clock.end(event.time));
  made.duration = std::max(step, clock.end(alone.duration));
  made.idle += made.duration - alone.duration;
  return made;
}

Evaluation evaluate_on_pipeline_clock(std::span<const std::shared_ptr<const Trace>> traces,
                                      const StrategySpec& strategy, const Device& device,
                                      const MemoryBudget& budget, std::optional<RankClass> rank) {
  RankEvaluations all = evaluate_all_ranks(traces, strategy, device, budget);
  if (all.classes.size() == 1) return std::move(all.classes.front());
  const std::size_t shown = shown_rank(all, rank);
  Evaluation& stage = all.classes[shown];
  stage.timeline =
      on_pipeline_clock(*stage.planned.trace, stage.schedule, stage.timeline,
                        all.pipeline.passes[shown], all.pipeline.total, stage.report.step);
  return std::move(stage);
}

}  // namespace tidemark
