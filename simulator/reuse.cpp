// What a stream knows of the others grows only when it waits. So a walk that notes each stream's
// clock after each of its waits can tell which wait is the first to follow a buffer's last uses.
#include "simulator/reuse.h"

#include "simulator/clock.h"

namespace tidemark {
namespace {

class Walk {
 public:
  explicit Walk(const Schedule& schedule)
      : schedule_(schedule),
        used_(schedule.buffers.size()),
        waited_(schedule.buffers.size()),
        recorded_(schedule.events),
        known_(schedule.streams),
        known_after_wait_(schedule.streams) {
    for (std::size_t s = 0; s < schedule.streams; ++s) note_wait(s);
  }

  std::vector<WaitCounts> run() && {
    for (const Step& step : schedule_.steps)
      std::visit(Overload{[&](const Allocate& s) {
                            used_[index(s.buffer)] = known(schedule_[s.buffer].stream);
                          },
                          [&](const Free& s) { waited_[index(s.buffer)] = waits_so_far(); },
                          [&](const Run& s) { use(s); }, [&](const CopyOut& s) { use(s); },
                          [&](const CopyIn& s) { use(s); },
                          [&](const Record& s) { recorded_[index(s.event)] = known(s.stream); },
                          [&](const Wait& s) { wait(index(s.stream), s.event); },
                          [&](const Synchronize& s) {
                            for (std::size_t t = 0; t < schedule_.streams; ++t) wait(t, s.event);
                          }},
                 step);
    for (std::size_t b = 0; b < used_.size(); ++b)
      for (std::size_t s = 0; s < schedule_.streams; ++s)
        waited_[b][s] = first_that_follows(s, waited_[b][s], used_[b]);
    return std::move(waited_);
  }

 private:
  Clock& known(StreamId stream) { return known_[index(stream)]; }

  void use(const Run& run) {
    const std::uint32_t now = ++known(run.stream)[index(run.stream)];
    for (const BufferId b : schedule_.reads(run)) used_[index(b)][index(run.stream)] = now;
    for (const BufferId b : schedule_.writes(run)) used_[index(b)][index(run.stream)] = now;
  }

  template <typename Copy>
  void use(const Copy& copy) {
    used_[index(copy.buffer)][index(copy.stream)] = ++known(copy.stream)[index(copy.stream)];
  }

  void wait(std::size_t stream, EventId event) {
    learn(known_[stream], recorded_[index(event)]);
    note_wait(stream);
  }

  // Of itself a stream knows all that was issued before.
  void note_wait(std::size_t stream) {
    Clock& after = known_after_wait_[stream].emplace_back(known_[stream]);
    after[stream] = never;
  }

  WaitCounts waits_so_far() const {
    WaitCounts waits{};
    for (std::size_t s = 0; s < schedule_.streams; ++s)
      waits[s] = static_cast<std::uint32_t>(known_after_wait_[s].size() - 1);
    return waits;
  }

  std::uint32_t first_that_follows(std::size_t stream, std::uint32_t waited,
                                   const Clock& used) const {
    const std::vector<Clock>& known = known_after_wait_[stream];
    if (follows(known[waited], used)) return 0;
    const auto is_too_early = [&](const Clock& clock) { return !follows(clock, used); };
    const auto first = std::partition_point(known.begin() + waited, known.end(), is_too_early);
    if (first == known.end()) return never;
    return static_cast<std::uint32_t>(first - known.begin());
  }

  const Schedule& schedule_;
  std::vector<Clock> used_;         // by buffer
  std::vector<WaitCounts> waited_;  // by buffer: each stream's waits before its Free
  std::vector<Clock> recorded_;     // by event
  std::vector<Clock> known_;        // by stream
  std::vector<std::vector<Clock>> known_after_wait_;  // by stream; first: before any
};

}  // namespace

std::vector<WaitCounts> derive_reuse(const Schedule& schedule) {
  if (schedule.streams == 1) return {};
  return Walk(schedule).run();
}

}  // namespace tidemark
