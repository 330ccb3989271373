// Replays the memory events to find the peak, and what is alive after any one of them.
#include "simulator/timeline.h"

#include <numeric>

namespace tidemark {

Bytes total(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), Bytes{});
}

Peak peak(const Schedule& schedule, const Timeline& timeline) {
  BytesByCategory now = timeline.baseline;
  Bytes live = total(now);
  Peak best{live, timeline.memory.size(), now};
  for (std::size_t i = 0; i < timeline.memory.size(); ++i) {
    const MemoryEvent& event = timeline.memory[i];
    const Buffer& buffer = schedule[event.buffer];
    Bytes& of_category = now[static_cast<std::size_t>(buffer.category)];
    if (!event.appears) {
      of_category -= buffer.size, live -= buffer.size;
      continue;
    }
    of_category += buffer.size, live += buffer.size;
    if (live > best.bytes) best = {live, i, now};
  }
  return best;
}

std::vector<BufferId> alive_after(const Schedule& schedule, const Timeline& timeline,
                                  std::size_t event) {
  std::vector<bool> present(schedule.buffers.size());
  for (std::size_t b = 0; b < present.size(); ++b) present[b] = schedule.buffers[b].persistent;
  for (std::size_t i = 0; i <= event && i < timeline.memory.size(); ++i)
    present[index(timeline.memory[i].buffer)] = timeline.memory[i].appears;
  std::vector<BufferId> alive;
  for (std::size_t b = 0; b < present.size(); ++b)
    if (present[b]) alive.push_back(static_cast<BufferId>(b));
  return alive;
}

}  // namespace tidemark
