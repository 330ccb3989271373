// How long a step and its parts take, read off its timeline.
#include "analysis/step_times.h"

#include <algorithm>

namespace tidemark {
namespace {

// Passes alternate in time: a forward begins at its first op, a backward at its seed, or what
// another stage has sent back.
void add_passes(const Schedule& schedule, const Timeline& timeline, StepTimes& times) {
  Nanoseconds begin{}, end{};
  OpId last = no_op;
  bool is_backward = false;
  const auto close = [&](Nanoseconds now) {
    (is_backward ? times.backward : times.forward) += now - begin;
    begin = now;
  };
  for (const TimedRun& timed : timeline.runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
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
  times.behind = timeline.duration - end;
}

}  // namespace

StepTimes times_of(const Trace& trace, const Schedule& schedule, const Timeline& timeline) {
  StepTimes times{.duration = timeline.duration,
                  .waits_for_host = timeline.waits_for_host,
                  .overlap = timeline.overlap,
                  .communication = communication_of(trace, schedule, timeline)};
  if (trace.step.mesh[Axis::Pipeline] > 1) add_passes(schedule, timeline, times);
  return times;
}

}  // namespace tidemark
