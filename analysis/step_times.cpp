// How long a step and its parts take, read off its timeline.
#include "analysis/step_times.h"

#include <algorithm>

#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {
namespace {

// The work that a run begins, if another was under way: a forward begins at its first op, a
// backward at its seed, or what another stage has sent back.
StageWork work_of(const Run& run, StageWork now) {
  if (run.task == Task::Forward) return StageWork::Forward;
  if (run.task == Task::WeightGradient) return StageWork::Weights;
  const bool goes_back =
      run.task == Task::Seed || run.task == Task::Backward || run.task == Task::Recompute;
  return goes_back ? StageWork::Backward : now;
}

void add_passes(const Schedule& schedule, const Timeline& timeline, StepTimes& times) {
  Nanoseconds begin{}, end{};
  StageWork now = StageWork::Forward;
  const auto close = [&](Nanoseconds at) {
    Nanoseconds& sum = now == StageWork::Forward    ? times.forward
                       : now == StageWork::Backward ? times.backward
                                                    : times.weights;
    sum += at - begin;
    begin = at;
  };
  for (const TimedRun& timed : timeline.runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run || run->task == Task::Optimizer) continue;
    if (const StageWork next = work_of(*run, now); next != now) {
      close(timed.begin);
      now = next;
    }
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
