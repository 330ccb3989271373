// Which work happens before which, whatever the timing: the judge's own vector clocks.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "simulator/schedule.h"

namespace tidemark::judge {

/// Entry s counts runs and copies of stream s.
using Moment = std::array<std::uint32_t, max_streams>;

/// True if everything up to `earlier` has happened at `later`.
inline bool follows(const Moment& later, const Moment& earlier) {
  for (std::size_t s = 0; s < max_streams; ++s)
    if (later[s] < earlier[s]) return false;
  return true;
}

inline void merge(Moment& into, const Moment& other) {
  for (std::size_t s = 0; s < max_streams; ++s) into[s] = std::max(into[s], other[s]);
}

/// What each stream has done and has waited for, as the host issues steps.
class Clocks {
 public:
  explicit Clocks(std::size_t events) : events_(events) {}

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
  std::array<Moment, max_streams> now_{};
  std::vector<std::optional<Moment>> events_;
};

}  // namespace tidemark::judge
