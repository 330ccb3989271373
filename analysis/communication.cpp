// Sweeps over beginnings and ends: exposed is what lies between two of them while collectives are
// all that runs.
#include "analysis/communication.h"

#include <algorithm>
#include <vector>

namespace tidemark {
namespace {

struct Change {
  Nanoseconds time;
  bool is_collective;
  int by;  ///< +1 begins, −1 ends
};

bool is_exchange(const Schedule& schedule, const TimedRun& timed) {
  const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
  return run && is_collective(run->task);
}

}  // namespace

Communication communication_of(const Schedule& schedule, const Timeline& timeline) {
  Communication result;
  std::vector<Change> changes;
  for (const TimedRun& timed : timeline.runs) {
    const bool exchanges = is_exchange(schedule, timed);
    if (exchanges) result.alone += timed.end - timed.begin;
    changes.push_back({timed.begin, exchanges, 1});
    changes.push_back({timed.end, exchanges, -1});
  }
  if (result.alone == Nanoseconds{}) return result;
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
