// The plainest answers to what the indices of the GUI answer quickly.
#pragma once

#include <vector>

#include "gui/indexes/track_index.h"
#include "simulator/timeline.h"

namespace tidemark::gui {

/// Live bytes after each event, beginning with those before all.
struct PlainState {
  double begin;
  BytesByCategory bytes;
};

inline std::vector<PlainState> plain_states(const Schedule& schedule, const Timeline& timeline) {
  std::vector<PlainState> states{{-1, timeline.baseline}};
  for (const MemoryEvent& event : timeline.memory) {
    PlainState state = states.back();
    state.begin = static_cast<double>(event.time.count());
    Bytes& of_category = state.bytes[static_cast<std::size_t>(schedule[event.buffer].category)];
    const Bytes size = schedule[event.buffer].size;
    of_category = event.appears ? of_category + size : of_category - size;
    states.push_back(state);
  }
  return states;
}

/// Stretches that do not overlap, some of them empty, some touching.
template <typename Dice>
std::vector<Stretch> random_stretches(Dice& dice, std::size_t count) {
  std::vector<Stretch> stretches;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!dice.one_in(3)) at += static_cast<std::int64_t>(dice.below(dice.one_in(9) ? 900 : 9));
    const auto length = static_cast<std::int64_t>(dice.below(dice.one_in(7) ? 400 : 12));
    stretches.push_back({at, at + length, static_cast<std::uint32_t>(i)});
    at += length;
  }
  return stretches;
}

}  // namespace tidemark::gui
