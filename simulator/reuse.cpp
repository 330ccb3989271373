// What a stream knows of the others grows only when it waits. So a walk that notes each taker's
// clock after each of its waits can tell which wait is the first to follow a buffer's last uses.
#include "simulator/reuse.h"

#include "simulator/clock.h"

namespace tidemark {
namespace {

std::vector<StreamId> takers_of(const Schedule& schedule) {
  std::vector<std::uint8_t> takes(schedule.streams);
  for (const Buffer& buffer : schedule.buffers) takes[index(buffer.stream)] = true;
  std::vector<StreamId> takers;
  for (std::size_t s = 0; s < takes.size(); ++s)
    if (takes[s]) takers.push_back(static_cast<StreamId>(s));
  return takers;
}

class Walk {
 public:
  Walk(const Schedule& schedule, const std::vector<StreamId>& takers)
      : schedule_(schedule),
        takers_(takers),
        used_(schedule.streams, schedule.buffers.size()),
        waited_(takers.size(), schedule.buffers.size()),
        recorded_(schedule.streams, schedule.events),
        known_(schedule.streams, schedule.streams),
        known_after_wait_(takers.size(), StreamCounts(schedule.streams)),
        waits_(takers.size()) {
    for (std::size_t t = 0; t < takers.size(); ++t) note_known(t);
  }

  StreamCounts run() && {
    for (const Step& step : schedule_.steps)
      std::visit(
          Overload{[&](const Allocate& s) {
                     copy_to(used_[index(s.buffer)], known(schedule_[s.buffer].stream));
                   },
                   [&](const Free& s) { copy_to(waited_[index(s.buffer)], waits_); },
                   [&](const Run& s) {
                     const std::uint32_t now = next_of(s.stream);
                     for (const BufferId b : schedule_.operands_of(s)) use(b, s.stream, now);
                   },
                   [&](const CopyOut& s) { use(s.buffer, s.stream, next_of(s.stream)); },
                   [&](const CopyIn& s) { use(s.buffer, s.stream, next_of(s.stream)); },
                   [&](const Record& s) { copy_to(recorded_[index(s.event)], known(s.stream)); },
                   [&](const Wait& s) { wait(s.stream, s.event); },
                   [&](const Synchronize& s) {
                     for (std::size_t t = 0; t < schedule_.streams; ++t)
                       wait(static_cast<StreamId>(t), s.event);
                   }},
          step);
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b)
      for (std::size_t t = 0; t < takers_.size(); ++t)
        waited_[b][t] = first_that_follows(t, waited_[b][t], used_[b]);
    return std::move(waited_);
  }

 private:
  std::span<std::uint32_t> known(StreamId stream) { return known_[index(stream)]; }
  std::uint32_t next_of(StreamId stream) { return ++known(stream)[index(stream)]; }
  void use(BufferId buffer, StreamId stream, std::uint32_t now) {
    used_[index(buffer)][index(stream)] = now;
  }

  void wait(StreamId stream, EventId event) {
    learn(known(stream), recorded_[index(event)]);
    for (std::size_t t = 0; t < takers_.size(); ++t)
      if (takers_[t] == stream) ++waits_[t], note_known(t);
  }

  // Of itself a stream knows all that was issued before.
  void note_known(std::size_t taker) {
    const std::size_t stream = index(takers_[taker]);
    known_after_wait_[taker].append(known_[stream])[stream] = never_follows;
  }

  std::uint32_t first_that_follows(std::size_t taker, std::uint32_t waited, Clock used) const {
    const StreamCounts& known = known_after_wait_[taker];
    if (follows(known[waited], used)) return 0;
    std::size_t too_early = waited, first = known.rows();              // or all are too early
    for (std::size_t step = 1; first - too_early > step; step *= 2) {  // most follow soon
      if (follows(known[too_early + step], used)) {
        first = too_early + step;
        break;
      }
      too_early += step;
    }
    while (first - too_early > 1) {
      const std::size_t middle = too_early + (first - too_early) / 2;
      (follows(known[middle], used) ? first : too_early) = middle;
    }
    return first == known.rows() ? never_follows : static_cast<std::uint32_t>(first);
  }

  const Schedule& schedule_;
  const std::vector<StreamId>& takers_;
  StreamCounts used_;      // by buffer
  StreamCounts waited_;    // by buffer and taker: its waits before the buffer's Free
  StreamCounts recorded_;  // by event
  StreamCounts known_;     // by stream
  std::vector<StreamCounts> known_after_wait_;  // by taker and wait; first: before any
  std::vector<std::uint32_t> waits_;            // by taker: so far
};

}  // namespace

Reuse derive_reuse(const Schedule& schedule) {
  if (schedule.streams == 1) return {{StreamId::Compute}, StreamCounts(0)};
  Reuse reuse{takers_of(schedule), StreamCounts(0)};
  reuse.ready_after = Walk(schedule, reuse.takers).run();
  return reuse;
}

}  // namespace tidemark
