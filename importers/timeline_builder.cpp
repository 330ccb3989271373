// What recordings get wrong is mended here: runs of one stream that overlap by what was rounded,
// and events that are not in the order of time.
#include "importers/timeline_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::importers {

TimelineBuilder::TimelineBuilder(std::string name, Nanoseconds duration) {
  trace_.model = std::move(name);
  trace_.step.batch = 0;  // unknown
  made_.timeline.duration = duration;
}

TimelineBuilder::TimelineBuilder(RecordedTimeline begun, Nanoseconds later, Nanoseconds duration)
    : made_(std::move(begun)), trace_(*made_.trace) {
  for (MemoryEvent& event : made_.timeline.memory) event.time += later;
  for (const Buffer& buffer : made_.schedule.buffers) all_bytes_ += buffer.size.count;
  made_.timeline.duration = duration;
}

void TimelineBuilder::add_runs(std::vector<RecordedSpan> spans) {
  std::ranges::stable_sort(spans, {}, &RecordedSpan::begin);
  std::map<std::int64_t, StreamId> streams;
  for (const RecordedSpan& span : spans) streams.try_emplace(span.lane);
  constexpr std::size_t most = 0xffff;
  std::size_t next = 0;
  for (auto& [lane, stream] : streams) stream = static_cast<StreamId>(std::min(next++, most - 1));
  made_.schedule.streams = std::clamp<std::size_t>(next, made_.schedule.streams, most);
  busy_until_.resize(made_.schedule.streams);
  for (const RecordedSpan& span : spans) add_run(span, streams[span.lane]);
}

// Of one stream they follow one another: times are rounded, and may meet.
void TimelineBuilder::add_run(const RecordedSpan& span, StreamId stream) {
  const auto [op, is_new] = ops_.try_emplace(span.name, static_cast<OpId>(trace_.ops.size()));
  if (is_new) {
    const std::string name = printable(span.name, 120);
    trace_.ops.push_back({.name = trace_.names.add(name),
                          .kind = OpKind::Opaque,
                          .opaque = static_cast<OpaqueId>(trace_.opaque_rows.size())});
    trace_.opaque_rows.push_back({.operation = name});
  }
  Nanoseconds& busy = busy_until_[index(stream)];
  const Nanoseconds begin = std::max(busy, span.begin);
  if (begin > span.end) return;
  busy = span.end;
  made_.timeline.runs.push_back(
      {static_cast<std::uint32_t>(made_.schedule.steps.size()), stream, begin, span.end});
  made_.schedule.steps.push_back(Run{span.task, stream, op->second, 0, 0, 0});
}

TensorId TimelineBuilder::tensor(const std::string& name, const std::string& callers,
                                 std::int64_t bytes, Category category) {
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  const auto [place, is_new] =
      tensors_.try_emplace(fmt::format("{}\n{}\n{}", name, callers, bytes), id);
  if (is_new) {
    trace_.tensors.push_back({.name = trace_.names.add(name),
                              .shape = {bytes},
                              .dtype = DType::UInt8,
                              .category = category,
                              .storage = id});
    made_.callers.push_back(callers);
  }
  return place->second;
}

BufferId TimelineBuilder::add_buffer(std::int64_t bytes, TensorId tensor) {
  if (bytes > largest_size - all_bytes_)
    throw InputError(fmt::format("more than {} in all allocations together; no run has so much",
                                 to_text(Bytes{largest_size})));
  all_bytes_ += bytes;
  made_.schedule.buffers.push_back(
      {.size = Bytes{bytes}, .tensor = tensor, .category = trace_[tensor].category});
  return static_cast<BufferId>(made_.schedule.buffers.size() - 1);
}

void TimelineBuilder::appear(BufferId buffer, Nanoseconds time) {
  made_.schedule.steps.push_back(Allocate{buffer});
  made_.timeline.memory.push_back({time, buffer, true});
}

void TimelineBuilder::disappear(BufferId buffer, Nanoseconds time) {
  made_.schedule.steps.push_back(Free{buffer, StreamId::Compute});
  made_.timeline.memory.push_back({time, buffer, false});
}

void TimelineBuilder::stay(BufferId buffer) {
  Buffer& stays = made_.schedule.buffers[index(buffer)];
  stays.persistent = true;
  made_.timeline.baseline[static_cast<std::size_t>(stays.category)] += stays.size;
}

RecordedTimeline TimelineBuilder::finish() && {
  std::ranges::stable_sort(made_.timeline.memory, {}, &MemoryEvent::time);
  sum_up_streams();
  made_.trace = std::make_shared<const Trace>(std::move(trace_));
  return std::move(made_);
}

// How long no stream was busy, and how long two or more were.
void TimelineBuilder::sum_up_streams() {
  std::vector<std::pair<Nanoseconds, int>> changes;
  for (const TimedRun& run : made_.timeline.runs) {
    changes.emplace_back(run.begin, 1);
    changes.emplace_back(run.end, -1);
  }
  std::ranges::sort(changes);
  Timeline& timeline = made_.timeline;
  timeline.idle = timeline.duration;
  Nanoseconds last{};
  int busy = 0;
  for (const auto& [time, change] : changes) {
    if (busy >= 1) timeline.idle -= time - last;
    if (busy >= 2) timeline.overlap += time - last;
    busy += change, last = time;
  }
}

}  // namespace tidemark::importers
