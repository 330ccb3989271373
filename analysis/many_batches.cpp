// A stage on one stream is put together from what it does with each micro-batch (StageScript). Of
// other steps rounds are found. Example, the first of two stages, five micro-batches: F1 (F2 B1)
// (F3 B2) (F4 B3) (F5 B4) B5. What is in brackets is a round. A step in which one round is like the
// one before it says what every further round takes and asks for.
#include "analysis/many_batches.h"

#include <algorithm>

#include "analysis/repeated_rounds.h"
#include "base/units.h"
#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {
namespace {

/// Each round, of `each` micro-batches, may be like the one before after the first `least`.
struct Rounds {
  std::int64_t least, each;
};

// The first backward makes gradients, to which the second is the first to add, as all do that come
// behind it. On a pipeline stage micro-batches that are in flight then come to an end, and a round
// behind them is the first that others are like.
std::optional<Rounds> rounds_of(const StepOptions& step) {
  const PipelineSchedule schedule = step.schedule.value_or(PipelineSchedule());
  const std::int64_t stages = step.mesh[Axis::Pipeline];
  const std::int64_t each =
      schedule.kind == PipelineSchedule::Kind::Interleaved ? schedule.group_of(stages) : 1;
  const std::int64_t ahead =
      forwards_ahead(schedule, stages, step.rank.value_or(RankClass()).stage);
  if (ahead == INT64_MAX) return std::nullopt;
  if (stages == 1) return Rounds{3, each};
  return Rounds{round_up(2 * ceil_div(ahead, schedule.chunks) + 3, each) + each, each};
}

std::shared_ptr<const Trace> with_batches(const Trace& trace, std::int64_t batches) {
  auto few = std::make_shared<Trace>(trace);
  few->step.accumulate.count = batches;
  few->calls.reset();  // of a capture with so many, which is not of one kind with a longer step's
  return few;
}

// What is allocated at once, before any rounding.
Bytes requested_peak(const allocator::AllocatorCalls& calls) {
  using Kind = allocator::AllocatorCall::Kind;
  std::vector<Bytes> size_of(calls.slots);
  Bytes now, most;
  for (const auto* some : {&calls.before, &calls.step})
    for (const allocator::AllocatorCall& call : *some) {
      if (call.kind == Kind::Allocate) now += size_of[call.slot] = call.size;
      if (call.kind == Kind::Free) now -= size_of[call.slot];
      most = std::max(most, now);
    }
  return most;
}

// set_memory(), unless the step is surely smaller than another.
template <class Calls>
bool set_memory_or_leave(const Calls& calls, const MemoryBudget& budget, Bytes other,
                         Report& report) {
  if (is_surely_smaller(calls, budget, other)) return false;
  set_memory(calls, budget, report);
  return true;
}

// Tries steps that are a round longer and longer, as long as they are less work than all of it.
// Nothing where rounds differ.
std::optional<TimedStep> play_rounds(const Trace& trace, const StrategySpec& strategy,
                                     const Device& device) {
  const std::optional<Rounds> rounds = rounds_of(trace.step);
  if (!rounds) return std::nullopt;
  const std::int64_t all = trace.step.accumulate.count;
  std::int64_t count = rounds->least + (all - rounds->least) % rounds->each, played = 0;
  while (played + (count += rounds->each) < all) {
    const auto few = with_batches(trace, count);
    const Evaluation made = play_step(few, strategy, device);
    if (!made.report.applies) return std::nullopt;
    StepTotals totals = totals_of(*few, device, made);
    if (auto more = repeated_step(made, totals, rounds->each, (all - count) / rounds->each)) {
      totals.times = std::move(more->times);
      set_rates(trace, device, totals);
      const Bytes least = requested_peak(totals.calls);
      return TimedStep{std::move(totals), least,
                       [calls = std::move(more->calls)](const MemoryBudget& budget, Bytes other,
                                                        StepTotals& of) {
                         return set_memory_or_leave(calls, budget, other, of.report);
                       }};
    }
    played += count;
  }
  return std::nullopt;
}

// The stage's script, unless it is that of the stage before.
std::shared_ptr<const StageScript> script_of(const Trace& trace, const StrategySpec& strategy,
                                             const Device& device,
                                             std::optional<ScriptedStage>& last) {
  const auto few = with_batches(trace, scripted_batches);
  PlannedStep planned = plan_step(few, strategy);
  if (last && are_alike(last->planned, planned)) return last->script;
  last = ScriptedStage{planned, nullptr};
  const Evaluation placed = place_step(std::move(planned));
  if (!placed.report.applies) return nullptr;
  if (auto script = script_of(*few, placed, device))
    last->script = std::make_shared<const StageScript>(std::move(*script));
  return last->script;
}

// What many micro-batches ask of the allocator, from a step in which a round is like another.
bool set_memory_or_leave(const StageScript& script, const StepOptions& step,
                         const MemoryBudget& budget, Bytes other, StepTotals& totals) {
  const auto actions_with = [&](std::int64_t batches) {
    const std::int64_t stage = step.rank.value_or(RankClass()).stage;
    return actions_of(script.schedule, script.stages, stage, batches);
  };
  const std::int64_t all = step.accumulate.count;
  if (const std::optional<Rounds> rounds = rounds_of(step)) {
    std::int64_t count = rounds->least + (all - rounds->least) % rounds->each;
    while ((count += rounds->each) < all) {
      const auto actions = actions_with(count);
      totals.calls = calls_of(script, actions);
      const auto repeated = allocator::repeated_calls(
          totals.calls, last_round(script, actions, rounds->each), (all - count) / rounds->each);
      if (repeated) return set_memory_or_leave(*repeated, budget, other, totals.report);
    }
  }
  totals.calls = calls_of(script, actions_with(all));
  return set_memory_or_leave(totals.calls, budget, other, totals.report);
}

// Nothing where streams share the device before the last action, or micro-batches share more than
// gradients.
std::optional<TimedStep> play_script(const Trace& trace, const StrategySpec& strategy,
                                     const Device& device, std::optional<ScriptedStage>& last) {
  const StepOptions& step = trace.step;
  if (step.mesh[Axis::Pipeline] == 1 || step.accumulate.count <= scripted_batches)
    return std::nullopt;
  const auto script = script_of(trace, strategy, device, last);
  if (!script) return std::nullopt;
  const auto actions = actions_of(script->schedule, script->stages,
                                  step.rank.value_or(RankClass()).stage, step.accumulate.count);
  std::optional<StepTimes> times = times_of(*script, actions);
  if (!times) return std::nullopt;
  StepTotals totals{.report = script->report, .times = std::move(*times), .flops = script->flops};
  totals.report.rank = step.rank;
  set_rates(trace, device, totals);
  return TimedStep{std::move(totals), requested_peak(*script, actions),
                   [script, step](const MemoryBudget& budget, Bytes other, StepTotals& of) {
                     return set_memory_or_leave(*script, step, budget, other, of);
                   }};
}

// The allocator's calls of a capture are of all rounds.
bool may_be_recorded(const Trace& trace, const StrategySpec& strategy) {
  return trace.calls && trace.calls->of == trace.step &&
         std::ranges::all_of(strategy.components, [](const StrategySpec::Component& component) {
           return component.row->is_reference;
         });
}

}  // namespace

TimedStep timed_step(const std::shared_ptr<const Trace>& trace, const StrategySpec& strategy,
                     const Device& device, std::optional<ScriptedStage>& last) {
  if (!may_be_recorded(*trace, strategy)) {
    if (auto step = play_script(*trace, strategy, device, last)) return *std::move(step);
    if (auto step = play_rounds(*trace, strategy, device)) return *std::move(step);
  }
  const Evaluation made = play_step(trace, strategy, device);
  if (!made.report.applies) return {{made.report}, {}, {}};
  StepTotals totals = totals_of(*trace, device, made);
  const Bytes least = requested_peak(totals.calls);
  return {std::move(totals), least, [](const MemoryBudget& budget, Bytes other, StepTotals& of) {
            return set_memory_or_leave(of.calls, budget, other, of.report);
          }};
}

}  // namespace tidemark
