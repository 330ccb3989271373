// The memory of a step over time, to be drawn at any zoom: for each pixel column the moment of most
// live bytes in it, with the categories of that very moment, so that a stack adds up and a peak of
// one event is never lost.
#pragma once

#include <span>
#include <utility>

#include "gui/indexes/range_maximum.h"
#include "simulator/timeline.h"

namespace tidemark::gui {

/// What is alive between two events: state 0 is before all of them, state i + 1 after event i.
using StateId = std::size_t;

class MemoryPyramid {
 public:
  MemoryPyramid() = default;
  /// The timeline must outlive it.
  MemoryPyramid(const Schedule& schedule, const Timeline& timeline);

  std::size_t states() const { return totals_.size(); }
  Bytes total_of(StateId state) const { return {totals_[state]}; }
  BytesByCategory categories_of(StateId state) const;
  /// When it began; state 0 has always been.
  Nanoseconds begin_of(StateId state) const;

  /// The state at a moment; after all events of that moment.
  StateId at(double moment) const;
  /// The first state of most bytes among those that last into, or begin in, [begin, end).
  StateId highest_in(double begin, double end) const;
  /// Those states, [first, last).
  std::pair<StateId, StateId> states_in(double begin, double end) const;
  StateId highest() const { return totals_.largest_in(0, states()); }

 private:
  std::size_t events_before(double moment) const;

  std::span<const MemoryEvent> events_;
  std::vector<std::uint8_t> categories_;  ///< by event
  std::vector<BytesByCategory> samples_;  ///< of every so-manieth state
  RangeMaximum totals_;                   ///< by state
};

}  // namespace tidemark::gui
