// Packs an arena by looking through all gaps at each step: plan_arena() must find the same places.
#pragma once

#include <algorithm>
#include <optional>

#include "simulator/arena.h"

namespace tidemark {

class NaiveArena {
 public:
  explicit NaiveArena(const Schedule& schedule)
      : schedule_(schedule),
        used_(schedule.buffers.size(), Clock(schedule.streams)),
        recorded_(schedule.events, Clock(schedule.streams)),
        known_(schedule.streams, Clock(schedule.streams)) {
    arena_.offsets.assign(schedule.buffers.size(), 0);
    for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
      if (schedule.buffers[b].persistent) place(static_cast<BufferId>(b));
  }

  Arena pack() {
    for (const Step& step : schedule_.steps)
      std::visit(Overload{[&](const Allocate& s) { place(s.buffer); },
                          [&](const Free& s) { free(s.buffer); }, [&](const Run& s) { use(s); },
                          [&](const CopyOut& s) { use(s.buffer, s.stream); },
                          [&](const CopyIn& s) { use(s.buffer, s.stream); },
                          [&](const Record& s) { recorded_[index(s.event)] = known(s.stream); },
                          [&](const Wait& s) { learn(known(s.stream), recorded_[index(s.event)]); },
                          [&](const Synchronize& s) {
                            for (Clock& known : known_) learn(known, recorded_[index(s.event)]);
                          }},
                 step);
    return arena_;
  }

 private:
  using Clock = std::vector<std::uint32_t>;  // by stream: so many of its runs and copies

  static void learn(Clock& clock, const Clock& other) {
    for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
  }
  static bool follows(const Clock& later, const Clock& earlier) {
    for (std::size_t s = 0; s < later.size(); ++s)
      if (later[s] < earlier[s]) return false;
    return true;
  }

  struct Gap {
    std::int64_t begin, end;
    Clock after;  // its last users
  };
  // Gaps [first, last) that touch.
  struct Hole {
    std::size_t first, last;
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };

  static std::int64_t padded(Bytes bytes) { return round_up(bytes.count, arena_alignment); }
  Clock& known(StreamId stream) { return known_[index(stream)]; }

  void use(BufferId buffer, StreamId stream) {
    used_[index(buffer)][index(stream)] = ++known(stream)[index(stream)];
  }
  void use(const Run& run) {
    for (const BufferId b : schedule_.reads(run)) use(b, run.stream);
    for (const BufferId b : schedule_.writes(run)) use(b, run.stream);
  }

  void place(BufferId id) {
    const Buffer& buffer = schedule_[id];
    used_[index(id)] = known(buffer.stream);
    const std::int64_t bytes = padded(buffer.size);
    if (bytes == 0) return;
    const std::optional<Hole> hole = find(bytes, known(buffer.stream));
    const std::int64_t begin = hole ? hole->begin : top_, end = begin + bytes;
    if (hole) take(*hole, end);
    arena_.offsets[index(id)] = begin;
    top_ = std::max(top_, end);
    arena_.size = {top_};
  }

  std::vector<Hole> holes(const Clock& now) const {
    std::vector<Hole> holes;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (!follows(now, gaps_[g].after)) continue;
      if (!holes.empty() && holes.back().end == gaps_[g].begin)
        holes.back().end = gaps_[g].end, holes.back().last = g + 1;
      else
        holes.push_back({g, g + 1, gaps_[g].begin, gaps_[g].end});
    }
    return holes;
  }

  // Best fit; hole at the top that is too small counts only if nothing fits.
  std::optional<Hole> find(std::int64_t bytes, const Clock& now) const {
    const std::vector<Hole> all = holes(now);
    std::optional<Hole> best;
    for (const Hole& hole : all)
      if (hole.size() >= bytes && (!best || hole.size() < best->size())) best = hole;
    if (!best && !all.empty() && all.back().end == top_) best = all.back();
    return best;
  }

  void take(const Hole& hole, std::int64_t end) {
    const auto gap = [&](std::size_t g) { return gaps_.begin() + static_cast<std::ptrdiff_t>(g); };
    std::size_t kept = hole.first;
    while (kept < hole.last && gaps_[kept].end <= end) ++kept;
    if (kept < hole.last) gaps_[kept].begin = std::max(gaps_[kept].begin, end);
    gaps_.erase(gap(hole.first), gap(kept));
  }

  void free(BufferId id) {
    const std::int64_t begin = arena_.offsets[index(id)], bytes = padded(schedule_[id].size);
    if (bytes == 0) return;
    const auto next = std::ranges::lower_bound(gaps_, begin, {}, &Gap::begin);
    gaps_.insert(next, {begin, begin + bytes, used_[index(id)]});
  }

  const Schedule& schedule_;
  std::vector<Clock> used_;      // by buffer
  std::vector<Clock> recorded_;  // by event
  std::vector<Clock> known_;     // by stream
  std::vector<Gap> gaps_;        // by address
  std::int64_t top_ = 0;
  Arena arena_;
};

inline Arena naive_arena(const Schedule& schedule) { return NaiveArena(schedule).pack(); }

}  // namespace tidemark
