// Recovery is what recompute and reconstruct runs take on one stream; hidden, what the step saves.
#include "analysis/recovery_time.h"

namespace tidemark {

bool recovers(const Schedule& schedule, const TimedRun& run) {
  const Run* of_step = std::get_if<Run>(&schedule.steps[run.step]);
  return of_step && (of_step->task == Task::Recompute || of_step->task == Task::Reconstruct);
}

RecoveryTime recovery_time(const Schedule& schedule, const Timeline& timeline) {
  RecoveryTime time;
  for (const TimedRun& run : timeline.runs)
    if (recovers(schedule, run)) time.alone += run.end - run.begin;
  return time;
}

RecoveryTime recovery_time(const Schedule& schedule_of_one, const Timeline& one,
                           const Timeline& two) {
  RecoveryTime time = recovery_time(schedule_of_one, one);
  time.hidden = one.duration - two.duration;
  return time;
}

Plan on_one_stream(Plan plan) {
  plan.overlap = false;
  plan.quirks.synchronizes_host = plan.quirks.two_new_streams = false;
  return plan;
}

}  // namespace tidemark
