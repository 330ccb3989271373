// Builds a timeline again, from what of another lies in the window.
#include "importers/timeline_window.h"

#include <algorithm>

namespace tidemark::importers {
namespace {

/// When a buffer is there.
struct Presence {
  Nanoseconds from = Nanoseconds::max(), to = Nanoseconds::max();
};

std::vector<Presence> presences(const RecordedTimeline& all) {
  std::vector<Presence> found(all.schedule.buffers.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (all.schedule.buffers[i].persistent) found[i].from = Nanoseconds::min();
  for (const MemoryEvent& event : all.timeline.memory)
    (event.appears ? found[index(event.buffer)].from : found[index(event.buffer)].to) = event.time;
  return found;
}

void copy_runs(const RecordedTimeline& all, Nanoseconds begin, Nanoseconds end,
               TimelineBuilder& into) {
  std::vector<RecordedSpan> spans;
  for (const TimedRun& run : all.timeline.runs) {
    if (run.begin < begin || run.begin >= end) continue;
    const Run& step = std::get<Run>(all.schedule.steps[run.step]);
    spans.push_back({run.begin - begin, std::min(run.end, end) - begin,
                     static_cast<std::int64_t>(index(run.stream)), (*all.trace)[step.op].name,
                     step.task});
  }
  into.add_runs(std::move(spans));
}

}  // namespace

RecordedTimeline window_of(const RecordedTimeline& all, Nanoseconds begin, Nanoseconds end) {
  TimelineBuilder builder(all.trace->model, end - begin);
  copy_runs(all, begin, end, builder);
  const std::vector<Presence> present = presences(all);
  std::vector<BufferId> copies(present.size(), no_buffer);
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i].from >= end || present[i].to <= begin) continue;
    const Buffer& buffer = all.schedule.buffers[i];
    const Tensor& tensor = (*all.trace)[buffer.tensor];
    copies[i] = builder.add_buffer(buffer.size.count,
                                   builder.tensor(tensor.name, all.callers[index(buffer.tensor)],
                                                  buffer.size.count, buffer.category));
    if (present[i].from <= begin && present[i].to >= end)
      builder.stay(copies[i]);
    else if (present[i].from <= begin)
      builder.appear(copies[i], Nanoseconds{});
  }
  for (const MemoryEvent& event : all.timeline.memory) {
    const std::size_t i = index(event.buffer);
    if (copies[i] == no_buffer || event.time <= begin || event.time >= end) continue;
    if (event.appears)
      builder.appear(copies[i], event.time - begin);
    else
      builder.disappear(copies[i], event.time - begin);
  }
  RecordedTimeline made = std::move(builder).finish();
  made.device = all.device;
  return made;
}

}  // namespace tidemark::importers
