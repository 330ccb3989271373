// Packs an arena by looking through all gaps at each step: plan_arena() must find the same places.
#pragma once

#include <algorithm>
#include <optional>

#include "simulator/arena.h"
#include "simulator/clock.h"

namespace tidemark {

class NaiveArena {
 public:
  explicit NaiveArena(const Schedule& schedule)
      : schedule_(schedule), used_(schedule.buffers.size()), recorded_(schedule.events) {
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
  struct Gap {
    std::int64_t begin, end;
    Clock after;  // its last users
  };
  // Gaps [first, last) that touch.
  struct Room {
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
    const std::optional<Room> room = find(bytes, known(buffer.stream));
    const std::int64_t begin = room ? room->begin : top_, end = begin + bytes;
    if (room) take(*room, end);
    arena_.offsets[index(id)] = begin;
    top_ = std::max(top_, end);
    arena_.size = {top_};
  }

  std::vector<Room> rooms(const Clock& now) const {
    std::vector<Room> rooms;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (!follows(now, gaps_[g].after)) continue;
      if (!rooms.empty() && rooms.back().end == gaps_[g].begin)
        rooms.back().end = gaps_[g].end, rooms.back().last = g + 1;
      else
        rooms.push_back({g, g + 1, gaps_[g].begin, gaps_[g].end});
    }
    return rooms;
  }

  // Best fit; room at the top that is too small counts only if nothing fits.
  std::optional<Room> find(std::int64_t bytes, const Clock& now) const {
    const std::vector<Room> all = rooms(now);
    std::optional<Room> best;
    for (const Room& room : all)
      if (room.size() >= bytes && (!best || room.size() < best->size())) best = room;
    if (!best && !all.empty() && all.back().end == top_) best = all.back();
    return best;
  }

  void take(const Room& room, std::int64_t end) {
    const auto gap = [&](std::size_t g) { return gaps_.begin() + static_cast<std::ptrdiff_t>(g); };
    std::size_t kept = room.first;
    while (kept < room.last && gaps_[kept].end <= end) ++kept;
    if (kept < room.last) gaps_[kept].begin = std::max(gaps_[kept].begin, end);
    gaps_.erase(gap(room.first), gap(kept));
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
  std::array<Clock, max_streams> known_{};
  std::vector<Gap> gaps_;  // by address
  std::int64_t top_ = 0;
  Arena arena_;
};

inline Arena naive_arena(const Schedule& schedule) { return NaiveArena(schedule).pack(); }

}  // namespace tidemark
