// Example, the first of two stages, five micro-batches: F1 (F2 B1) (F3 B2) (F4 B3) (F5 B4) B5. What
// is in brackets is a round. Of two steps that are a round apart the longer one says what a round
// takes and asks for, if that is what the round before it does.
#include "analysis/many_batches.h"

#include <algorithm>

#include "base/units.h"
#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {
namespace {

/// Each round, of `each` micro-batches, may be like the one before after the first `least`.
struct Rounds {
  std::int64_t least, each;
};

// The first backward makes gradients, to which the second is the first to add; micro-batches that
// are in flight then come to an end, and a round behind them is the first that others are like.
std::optional<Rounds> rounds_of(const StepOptions& step) {
  const PipelineSchedule schedule = step.schedule.value_or(PipelineSchedule());
  const std::int64_t stages = step.mesh[Axis::Pipeline];
  const std::int64_t each =
      schedule.kind == PipelineSchedule::Kind::Interleaved ? schedule.group_of(stages) : 1;
  const std::int64_t ahead =
      forwards_ahead(schedule, stages, step.rank.value_or(RankClass()).stage);
  if (ahead == INT64_MAX) return std::nullopt;
  return Rounds{round_up(2 * ceil_div(ahead, schedule.chunks) + 3, each) + each, each};
}

/// A step of few micro-batches.
struct ShortStep {
  Evaluation made;
  StepTotals totals;
};

ShortStep short_step(const Trace& trace, std::int64_t batches, const StrategySpec& strategy,
                     const Device& device) {
  auto few = std::make_shared<Trace>(trace);
  few->step.accumulate.count = batches;
  few->calls.reset();  // of a capture with so many, which is not of one kind with a longer step's
  ShortStep step{play_step(few, strategy, device), {}};
  if (step.made.report.applies) step.totals = totals_of(*few, device, step.made);
  return step;
}

// The same run, so much later?
bool is_same(const Evaluation& a, const TimedRun& in_a, const Evaluation& b, const TimedRun& in_b,
             Nanoseconds later) {
  const Run* x = std::get_if<Run>(&a.schedule.steps[in_a.step]);
  const Run* y = std::get_if<Run>(&b.schedule.steps[in_b.step]);
  return x && y && x->task == y->task && x->op == y->op && in_a.stream == in_b.stream &&
         in_a.begin + later == in_b.begin && in_a.end + later == in_b.end;
}

// Does `more` run once more what it has run before, and else what `few` runs? And goes the host
// through a round as fast as the device, so that it never comes to be waited for?
bool are_alike(const Evaluation& few, const Evaluation& more) {
  const auto &a = few.timeline.runs, &b = more.timeline.runs;
  const std::size_t added = b.size() - std::min(a.size(), b.size());
  std::size_t begin = 0;
  while (begin < a.size() && is_same(few, a[begin], more, b[begin], {})) ++begin;
  if (added == 0 || begin < added || begin == a.size()) return false;
  const Nanoseconds round = b[begin].begin - b[begin - added].begin;
  for (std::size_t i = begin; i < begin + added; ++i)
    if (!is_same(more, b[i - added], more, b[i], round)) return false;
  for (std::size_t i = begin; i < a.size(); ++i)
    if (!is_same(few, a[i], more, b[i + added], round)) return false;
  return more.timeline.duration == few.timeline.duration + round &&
         more.timeline.host <= few.timeline.host + round;
}

// Where the last of two steps, which are a round apart, comes to after some rounds more.
StepTimes after_rounds(const StepTimes& before, const StepTimes& last, std::int64_t rounds) {
  const auto after = [rounds](Nanoseconds a, Nanoseconds b) { return b + (b - a) * rounds; };
  std::vector<ChunkTimes> chunks;
  for (std::size_t c = 0; c < last.chunks.size(); ++c) {
    const ChunkTimes &a = before.chunks[c], &b = last.chunks[c];
    chunks.push_back(
        {after(a.forward, b.forward), after(a.backward, b.backward), after(a.weights, b.weights)});
  }
  return {.duration = after(before.duration, last.duration),
          .waits_for_host = after(before.waits_for_host, last.waits_for_host),
          .overlap = after(before.overlap, last.overlap),
          .communication = {after(before.communication.alone, last.communication.alone),
                            after(before.communication.exposed, last.communication.exposed)},
          .chunks = std::move(chunks),
          .behind = after(before.behind, last.behind)};
}

// Tries steps that are a round longer and longer, as long as they are less work than all of it.
// Nothing where rounds differ: streams that share the device end between nanoseconds.
std::optional<StepTotals> play_rounds(const Trace& trace, const StrategySpec& strategy,
                                      const Device& device, const MemoryBudget& budget) {
  const std::optional<Rounds> rounds = rounds_of(trace.step);
  if (!rounds) return std::nullopt;
  const std::int64_t all = trace.step.accumulate.count;
  std::int64_t count = rounds->least + (all - rounds->least) % rounds->each, played = count;
  std::optional<ShortStep> few;
  for (; played + count + rounds->each < all; played += count) {
    if (!few) few = short_step(trace, count, strategy, device);
    if (!few->made.report.applies) return std::nullopt;
    ShortStep more = short_step(trace, count += rounds->each, strategy, device);
    const std::int64_t left = (all - count) / rounds->each;
    const auto calls = allocator::repeated_calls(few->totals.calls, more.totals.calls, left);
    if (calls && are_alike(few->made, more.made)) {
      more.totals.times = after_rounds(few->totals.times, more.totals.times, left);
      set_rates(trace, device, more.totals);
      set_memory(*calls, budget, more.totals.report);
      return std::move(more.totals);
    }
    few = std::move(more);
  }
  return std::nullopt;
}

// The allocator's calls of a capture are of all rounds.
bool may_be_recorded(const Trace& trace, const StrategySpec& strategy) {
  return trace.calls && trace.calls->of == trace.step &&
         std::ranges::all_of(strategy.components, [](const StrategySpec::Component& component) {
           return component.row->is_reference;
         });
}

}  // namespace

StepTotals evaluate_totals(const std::shared_ptr<const Trace>& trace, const StrategySpec& strategy,
                           const Device& device, const MemoryBudget& budget) {
  if (!may_be_recorded(*trace, strategy))
    if (auto totals = play_rounds(*trace, strategy, device, budget)) return std::move(*totals);
  const Evaluation made = play_step(trace, strategy, device);
  if (!made.report.applies) return {made.report};
  StepTotals totals = totals_of(*trace, device, made);
  set_memory(totals.calls, budget, totals.report);
  return totals;
}

}  // namespace tidemark
