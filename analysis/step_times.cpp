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

bool is_of_chunk(Task task) {
  return task == Task::Forward || task == Task::Seed || task == Task::Backward ||
         task == Task::WeightGradient || task == Task::Recompute;
}

bool is_in_order(Task task) {
  return task == Task::Forward || task == Task::Backward || task == Task::WeightGradient;
}

// Of what another micro-batch has behind it: forwards go through the ops once, the others back.
bool begins_anew(const Run& run, OpId last) {
  if (run.task == Task::Seed) return true;
  if (!is_in_order(run.task) || last == no_op) return false;
  return run.task == Task::Forward ? run.op <= last : run.op > last;
}

void add_passes(const Trace& trace, const Schedule& schedule, const Timeline& timeline,
                StepTimes& times) {
  times.chunks.resize(
      static_cast<std::size_t>(trace.step.schedule.value_or(PipelineSchedule()).chunks));
  Nanoseconds end{};
  for (const TimedPass& pass : passes_of(trace, schedule, timeline)) {
    time_of(times.chunks[static_cast<std::size_t>(pass.chunk)], pass.work) += pass.end - pass.begin;
    end = pass.end;
  }
  times.behind = timeline.duration - end;
}

}  // namespace

Nanoseconds& time_of(ChunkTimes& chunk, StageWork work) {
  if (work == StageWork::Forward) return chunk.forward;
  return work == StageWork::Backward ? chunk.backward : chunk.weights;
}

PassWalk::PassWalk(const Trace& trace) : chunk_of_(chunk_of_ops(trace)) {}

bool PassWalk::begins_pass(const Run& run) {
  const StageWork work = work_of(run, work_);
  const std::int64_t chunk =
      is_of_chunk(run.task) && run.op != no_op ? chunk_of_[index(run.op)] : chunk_;
  const bool begins = work != work_ || chunk != chunk_ || begins_anew(run, last_);
  if (begins) last_ = no_op;
  work_ = work, chunk_ = chunk;
  if (is_in_order(run.task)) last_ = run.op;
  return begins;
}

std::vector<TimedPass> passes_of(const Trace& trace, const Schedule& schedule,
                                 const Timeline& timeline) {
  PassWalk walk(trace);
  std::vector<TimedPass> passes;
  TimedPass now;
  Nanoseconds end{};
  const auto close = [&](Nanoseconds at) {
    now.end = at;
    if (at > now.begin) passes.push_back(now);
    now.begin = at;
  };
  for (const TimedRun& timed : timeline.runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run || run->task == Task::Optimizer) continue;
    if (walk.begins_pass(*run)) {
      close(timed.begin);
      now.work = walk.work(), now.chunk = walk.chunk();
    }
    if (!is_collective(run->task)) end = std::max(end, timed.end);
  }
  close(end);
  return passes;
}

StepTimes times_of(const Trace& trace, const Schedule& schedule, const Timeline& timeline) {
  StepTimes times{.duration = timeline.duration,
                  .waits_for_host = timeline.waits_for_host,
                  .overlap = timeline.overlap,
                  .communication = communication_of(trace, schedule, timeline)};
  if (trace.step.mesh[Axis::Pipeline] > 1) add_passes(trace, schedule, timeline, times);
  return times;
}

}  // namespace tidemark
