// Sweeps over beginnings and ends: exposed is what lies between two of them while collectives are
// all that runs.
#include "analysis/communication.h"

#include <algorithm>
#include <vector>

#include "simulator/parallel/exchanges.h"

namespace tidemark {
namespace {

struct Change {
  Nanoseconds time;
  bool is_collective;
  int by;  ///< +1 begins, −1 ends
};

bool is_exchange(const Trace& trace, const Schedule& schedule, const TimedRun& timed) {
  const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
  return run && exchange_of(trace, schedule, *run);
}

}  // namespace

Communication communication_of(const Trace& trace, const Schedule& schedule,
                               const Timeline& timeline) {
  Communication result;
  for (const TimedRun& timed : timeline.runs)
    if (is_exchange(trace, schedule, timed)) result.alone += timed.end - timed.begin;
  if (result.alone == Nanoseconds{}) return result;
  std::vector<Change> changes;
  for (const TimedRun& timed : timeline.runs) {
    const bool exchanges = is_exchange(trace, schedule, timed);
    changes.push_back({timed.begin, exchanges, 1});
    changes.push_back({timed.end, exchanges, -1});
  }
  std::ranges::sort(changes, {}, &Change::time);
  int collectives = 0, others = 0;
  Nanoseconds since{};
  for (const Change& change : changes) {
    if (collectives > 0 && others == 0) result.exposed += change.time - since;
    since = change.time;
    (change.is_collective ? collectives : others) += change.by;
  }
  return result;
}

}  // namespace tidemark
