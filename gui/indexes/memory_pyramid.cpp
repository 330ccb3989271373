// Keeps a total per event and the categories of every 64th state; searches by range maximum.
#include "gui/indexes/memory_pyramid.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tidemark::gui {
namespace {

// States between two samples: one byte per event is kept beside its total, and at most this many
// of them are walked for the categories of a state.
constexpr std::size_t stride = 64;

}  // namespace

MemoryPyramid::MemoryPyramid(const Schedule& schedule, const Timeline& timeline)
    : events_(timeline.memory) {
  const std::size_t events = events_.size();
  categories_.reserve(events);
  std::vector<std::int64_t> totals;
  totals.reserve(events + 1);
  BytesByCategory now = timeline.baseline;
  std::int64_t total_now = total(now).count;
  totals.push_back(total_now);
  samples_.push_back(now);
  for (const MemoryEvent& event : events_) {
    const Buffer& buffer = schedule[event.buffer];
    const Bytes change{event.appears ? buffer.size.count : -buffer.size.count};
    now[static_cast<std::size_t>(buffer.category)] += change;
    total_now += change.count;
    categories_.push_back(static_cast<std::uint8_t>(buffer.category));
    // All categories of every state would be 64 bytes for each of millions of events.
    if (totals.size() % stride == 0) samples_.push_back(now);
    totals.push_back(total_now);
  }
  CHECK(std::ranges::is_sorted(events_, {}, &MemoryEvent::time));
  totals_ = RangeMaximum(std::move(totals));
}

BytesByCategory MemoryPyramid::categories_of(StateId state) const {
  BytesByCategory bytes = samples_[state / stride];
  for (StateId i = state / stride * stride; i < state; ++i)
    // An event changes one category, by the difference of the totals.
    bytes[categories_[i]] += Bytes{totals_[i + 1] - totals_[i]};
  return bytes;
}

Nanoseconds MemoryPyramid::begin_of(StateId state) const {
  return state == 0 ? Nanoseconds{} : events_[state - 1].time;
}

std::size_t MemoryPyramid::events_before(double moment) const {
  const auto found = std::ranges::lower_bound(events_, moment, {}, [](const MemoryEvent& event) {
    return static_cast<double>(event.time.count());
  });
  return static_cast<std::size_t>(found - events_.begin());
}

// The next larger number, because events of the moment itself have happened.
StateId MemoryPyramid::at(double moment) const {
  return events_before(std::nextafter(moment, INFINITY));
}

std::pair<StateId, StateId> MemoryPyramid::states_in(double begin, double end) const {
  const std::size_t before = events_before(begin);
  const std::size_t last = events_before(end);
  // A state that ends at the very beginning has no part in it.
  const bool begins_here =
      before < last && static_cast<double>(events_[before].time.count()) == begin;
  return {before + (begins_here ? 1 : 0), std::max(before, last) + 1};
}

StateId MemoryPyramid::highest_in(double begin, double end) const {
  const auto [first, last] = states_in(begin, end);
  return totals_.largest_in(first, last);
}

}  // namespace tidemark::gui
