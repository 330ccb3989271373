// How long a step and its parts take, read off its timeline.
#include "analysis/step_times.h"

#include <algorithm>

#include "simulator/parallel/stage_trace.h"

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

Nanoseconds& time_of(ChunkTimes& chunk, StageWork work) {
  if (work == StageWork::Forward) return chunk.forward;
  return work == StageWork::Backward ? chunk.backward : chunk.weights;
}

bool is_of_chunk(Task task) {
  return task == Task::Forward || task == Task::Seed || task == Task::Backward ||
         task == Task::WeightGradient || task == Task::Recompute;
}

void add_passes(const Trace& trace, const Schedule& schedule, const Timeline& timeline,
                StepTimes& times) {
  const std::vector<std::int64_t> chunk_of = chunk_of_ops(trace);
  times.chunks.resize(
      static_cast<std::size_t>(trace.step.schedule.value_or(PipelineSchedule()).chunks));
  Nanoseconds begin{}, end{};
  StageWork now = StageWork::Forward;
  std::size_t chunk = 0;
  const auto close = [&](Nanoseconds at) {
    time_of(times.chunks[chunk], now) += at - begin;
    begin = at;
  };
  for (const TimedRun& timed : timeline.runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run || run->task == Task::Optimizer) continue;
    const StageWork work = work_of(*run, now);
    const std::size_t of = is_of_chunk(run->task) && run->op != no_op
                               ? static_cast<std::size_t>(chunk_of[index(run->op)])
                               : chunk;
    if (work != now || of != chunk) {
      close(timed.begin);
      now = work, chunk = of;
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
  if (trace.step.mesh[Axis::Pipeline] > 1) add_passes(trace, schedule, timeline, times);
  return times;
}

}  // namespace tidemark
