// Exposed is when something runs, and nothing but collectives.
#include "analysis/communication.h"

#include <algorithm>

#include "simulator/parallel/exchanges.h"

namespace tidemark {
namespace {

/// How long any of some runs is under way; they come in the order in which they begin.
class TimeOfAny {
 public:
  void add(const TimedRun& run) {
    time += std::max(Nanoseconds{}, run.end - std::max(until_, run.begin));
    until_ = std::max(until_, run.end);
  }
  Nanoseconds time{};

 private:
  Nanoseconds until_{};
};

bool is_exchange(const Trace& trace, const Schedule& schedule, const TimedRun& timed) {
  const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
  return run && exchange_of(trace, schedule, *run);
}

}  // namespace

Communication communication_of(const Trace& trace, const Schedule& schedule,
                               const Timeline& timeline) {
  Communication result;
  TimeOfAny all, others;
  for (const TimedRun& timed : timeline.runs) {
    const bool exchanges = is_exchange(trace, schedule, timed);
    if (exchanges) result.alone += timed.end - timed.begin;
    if (!exchanges) others.add(timed);
    all.add(timed);
  }
  if (result.alone > Nanoseconds{}) result.exposed = all.time - others.time;
  return result;
}

}  // namespace tidemark
