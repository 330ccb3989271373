// Which work happens before which, whatever the timing: the judge's own vector clocks.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "simulator/schedule.h"

namespace tidemark::judge {

/// Entry s counts the work of stream s: runs, copies and allocations; of streams behind the last
/// entry there are none.
using Moment = std::vector<std::uint32_t>;

/// True if everything up to `earlier` has happened at `later`.
inline bool follows(const Moment& later, const Moment& earlier) {
  for (std::size_t s = 0; s < earlier.size(); ++s)
    if ((s < later.size() ? later[s] : 0) < earlier[s]) return false;
  return true;
}

inline void merge(Moment& into, const Moment& other) {
  into.resize(std::max(into.size(), other.size()));
  for (std::size_t s = 0; s < other.size(); ++s) into[s] = std::max(into[s], other[s]);
}

/// What each stream has done and has waited for, as the host issues steps.
class Clocks {
 public:
  Clocks(std::size_t streams, std::size_t events)
      : now_(streams, Moment(streams)), events_(events) {}

  const Moment& operator[](StreamId stream) const { return now_[index(stream)]; }
  void count(StreamId stream) { ++now_[index(stream)][index(stream)]; }
  void record(Record r) { events_[index(r.event)] = now_[index(r.stream)]; }

  /// False if the event was never recorded: then there is nothing to wait for.
  bool wait(Wait w) {
    const auto& event = events_[index(w.event)];
    if (event) merge(now_[index(w.stream)], *event);
    return event.has_value();
  }
  bool synchronize(Synchronize s) {
    const auto& event = events_[index(s.event)];
    if (event)
      for (Moment& now : now_) merge(now, *event);  // whatever is issued from here on follows
    return event.has_value();
  }

 private:
  std::vector<Moment> now_;  // by stream
  std::vector<std::optional<Moment>> events_;
};

}  // namespace tidemark::judge
