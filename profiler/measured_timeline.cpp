// Merges the calls of a step, replays memory events along the streams, and sweeps for overlap.
#include "profiler/measured_timeline.h"

#include <algorithm>

namespace tidemark::profiler {
namespace {

// A step of several calls is one run, from the first one's begin to the last one's end.
std::vector<TimedRun> merged(const Schedule& schedule, const std::vector<Ran>& ran) {
  std::vector<TimedRun> runs;
  for (const Ran& one : ran) {
    if (one.step >= schedule.steps.size()) continue;
    const auto stream = static_cast<StreamId>(one.stream);
    const auto same = std::find_if(runs.rbegin(), runs.rend(),
                                   [&](const TimedRun& run) { return run.stream == stream; });
    if (same != runs.rend() && same->step == one.step)
      same->end = one.end;
    else
      runs.push_back({one.step, stream, one.begin, one.end});
  }
  std::ranges::stable_sort(runs, {}, &TimedRun::step);
  return runs;
}

// Begins and ends in time order; ends first where they meet.
struct Edge {
  Nanoseconds time;
  int change;
};

std::vector<Edge> edges_of(const std::vector<TimedRun>& runs) {
  std::vector<Edge> edges;
  for (const TimedRun& run : runs) {
    edges.push_back({run.begin, 1});
    edges.push_back({run.end, -1});
  }
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return a.time != b.time ? a.time < b.time : a.change < b.change;
  });
  return edges;
}

// Calls visit(busy streams, length) for each stretch of time.
template <typename Visit>
void sweep(const std::vector<Edge>& edges, Visit visit) {
  int busy = 0;
  Nanoseconds now{};
  for (const Edge& edge : edges) {
    visit(busy, edge.time - now);
    now = edge.time;
    busy += edge.change;
  }
}

class MemoryEvents {
 public:
  MemoryEvents(const Schedule& schedule, const std::vector<TimedRun>& runs)
      : schedule_(schedule), runs_(runs), reached_(schedule.streams), recorded_(schedule.events) {}

  std::vector<MemoryEvent> run() && {
    for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) {
      advance(i);
      std::visit(Overload{[&](const Allocate& s) {
                            events_.push_back({at(schedule_[s.buffer].stream), s.buffer, true});
                          },
                          [&](const Free& s) {
                            events_.push_back({at(s.stream), s.buffer, false});
                          },
                          [&](const Record& s) { recorded_[index(s.event)] = at(s.stream); },
                          [&](const Wait& s) {
                            at(s.stream) = std::max(at(s.stream), recorded_[index(s.event)]);
                          },
                          [](const auto&) {}},
                 schedule_.steps[i]);
    }
    if (schedule_.streams > 1) std::ranges::stable_sort(events_, {}, &MemoryEvent::time);
    return std::move(events_);
  }

 private:
  Nanoseconds& at(StreamId stream) { return reached_[index(stream)]; }

  void advance(std::uint32_t step) {
    for (; next_ < runs_.size() && runs_[next_].step == step; ++next_)
      at(runs_[next_].stream) = std::max(at(runs_[next_].stream), runs_[next_].end);
  }

  const Schedule& schedule_;
  const std::vector<TimedRun>& runs_;
  std::size_t next_ = 0;
  std::vector<Nanoseconds> reached_;  // by stream
  std::vector<Nanoseconds> recorded_;
  std::vector<MemoryEvent> events_;
};

}  // namespace

Timeline measured_timeline(const Schedule& schedule, const std::vector<Ran>& ran,
                           Nanoseconds host) {
  Timeline timeline;
  timeline.runs = merged(schedule, ran);
  timeline.memory = MemoryEvents(schedule, timeline.runs).run();
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent)
      timeline.baseline[static_cast<std::size_t>(buffer.category)] += buffer.size;
  timeline.host = host;
  timeline.duration = host;
  for (const TimedRun& run : timeline.runs)
    timeline.duration = std::max(timeline.duration, run.end);
  Nanoseconds busy{};
  sweep(edges_of(timeline.runs), [&](int streams, Nanoseconds length) {
    if (streams > 0) busy += length;
    if (streams > 1) timeline.overlap += length;
  });
  timeline.idle = timeline.duration - busy;
  return timeline;
}

}  // namespace tidemark::profiler
