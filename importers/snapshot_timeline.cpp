// One walk over the events makes buffers, steps and memory events; another, to the peak only, says
// how the pool looks there.
#include "importers/snapshot_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "importers/stack_text.h"

namespace tidemark::importers {
namespace {

using Kind = PoolReplay::Change::Kind;

std::size_t busiest_device(const MemorySnapshot& snapshot) {
  std::size_t devices = snapshot.events.size();
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device >= 0 && segment.device < 1024)
      devices = std::max(devices, static_cast<std::size_t>(segment.device) + 1);
  std::vector<std::pair<std::size_t, std::size_t>> score(devices);  // events, then segments
  for (std::size_t d = 0; d < snapshot.events.size(); ++d)
    score[d].first = snapshot.events[d].size();
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device >= 0 && segment.device < 1024)
      ++score[static_cast<std::size_t>(segment.device)].second;
  const auto best = std::ranges::max_element(score);
  if (best == score.end() || *best == std::pair<std::size_t, std::size_t>())
    throw InputError(
        "has neither events nor segments: nothing was allocated on a GPU before the snapshot "
        "(call torch.cuda.memory._record_memory_history() first, and dump after some steps)");
  return static_cast<std::size_t>(best - score.begin());
}

const std::vector<SnapshotEvent>& events_of(const MemorySnapshot& snapshot, std::size_t device) {
  static const std::vector<SnapshotEvent> none;
  return device < snapshot.events.size() ? snapshot.events[device] : none;
}

/// Times of events from the first on, never going back, and never longer than a step may be.
class Clock {
 public:
  explicit Clock(const std::vector<SnapshotEvent>& events)
      : first_(events.empty() ? 0 : events.front().time_us) {}
  Nanoseconds operator()(const SnapshotEvent& event) {
    constexpr std::int64_t longest_us = std::int64_t{1} << 40;
    const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_us) -
                                                 static_cast<std::uint64_t>(first_));
    if (since >= 0 && since <= longest_us)
      last_ = std::max(last_, Nanoseconds(std::chrono::microseconds(since)));
    return last_;
  }

 private:
  std::int64_t first_;
  Nanoseconds last_{};
};

class SnapshotTimelineMaker {
 public:
  SnapshotTimelineMaker(const MemorySnapshot& snapshot, const std::string& name)
      : snapshot_(snapshot), sites_(snapshot) {
    made_.device = busiest_device(snapshot);
    trace_.model = name;
    trace_.step.batch = 0;  // unknown
  }
  SnapshotTimeline make() &&;

 private:
  void add_blocks_before(const PoolReplay& pool);
  BufferId add_buffer(std::int64_t address, const PoolReplay::Block& block);
  TensorId tensor_of(const PoolReplay::Block& block);
  StreamId stream_of(std::int64_t handle);
  void appear(BufferId buffer, Nanoseconds time);
  void disappear(BufferId buffer, Nanoseconds time);
  void place_buffers();

  const MemorySnapshot& snapshot_;
  SiteNames sites_;
  SnapshotTimeline made_;
  Trace trace_;
  std::vector<std::int64_t> addresses_;  // by buffer
  std::unordered_map<std::int64_t, BufferId> at_address_;
  std::unordered_map<std::uint64_t, std::vector<TensorId>> tensors_;  // by stack
  std::unordered_map<std::int64_t, StreamId> streams_;
  Bytes all_;
};

SnapshotTimeline SnapshotTimelineMaker::make() && {
  const auto& events = events_of(snapshot_, made_.device);
  PoolReplay pool(snapshot_, made_.device);
  add_blocks_before(pool);
  Clock clock(events);
  for (const SnapshotEvent& event : events) {
    const Nanoseconds time = clock(event);
    made_.timeline.duration = time;
    const auto change = pool.apply(event);
    if (change.kind == Kind::Appears) appear(add_buffer(event.address, change.block), time);
    if (change.kind == Kind::Disappears) disappear(at_address_.at(event.address), time);
  }
  place_buffers();
  made_.timeline.idle = made_.timeline.duration;
  made_.schedule.streams = std::max<std::size_t>(1, streams_.size());
  made_.trace = std::make_shared<const Trace>(std::move(trace_));
  return std::move(made_);
}

// What no event frees is there from the beginning to the end.
void SnapshotTimelineMaker::add_blocks_before(const PoolReplay& pool) {
  std::unordered_map<std::int64_t, bool> is_freed;
  for (const SnapshotEvent& event : events_of(snapshot_, made_.device))
    if (event.action == SnapshotAction::FreeCompleted) is_freed.emplace(event.address, true);
  for (const auto& [address, block] : pool.blocks()) {
    const BufferId id = add_buffer(address, block);
    if (is_freed.contains(address)) {
      appear(id, Nanoseconds{});
      continue;
    }
    made_.schedule.buffers[index(id)].persistent = true;
    made_.timeline.baseline[static_cast<std::size_t>(Category::Unknown)] += block.size;
  }
}

BufferId SnapshotTimelineMaker::add_buffer(std::int64_t address, const PoolReplay::Block& block) {
  all_ += block.size;
  if (all_.count > largest_size)
    throw InputError(fmt::format("more than {} in all blocks together; no run has so much",
                                 to_text(Bytes{largest_size})));
  const auto id = static_cast<BufferId>(made_.schedule.buffers.size());
  made_.schedule.buffers.push_back({.size = block.size,
                                    .tensor = tensor_of(block),
                                    .role = Role::Value,
                                    .category = Category::Unknown,
                                    .stream = stream_of(block.stream)});
  made_.requested.push_back(block.requested);
  addresses_.push_back(address);
  at_address_.insert_or_assign(address, id);
  return id;
}

TensorId SnapshotTimelineMaker::tensor_of(const PoolReplay::Block& block) {
  std::vector<TensorId>& known =
      tensors_[index(block.stack) << 32 ^
               static_cast<std::uint64_t>(block.size.count) * 2654435761U];
  for (const TensorId id : known)
    if (made_.stack_of[index(id)] == block.stack && trace_[id].shape[0] == block.size.count)
      return id;
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  trace_.tensors.push_back({.name = trace_.names.add(sites_.name(block.stack)),
                            .shape = {block.size.count},
                            .dtype = DType::UInt8,
                            .category = Category::Unknown,
                            .storage = id});
  made_.stack_of.push_back(block.stack);
  made_.stacks.push_back(sites_.whole(block.stack));
  known.push_back(id);
  return id;
}

StreamId SnapshotTimelineMaker::stream_of(std::int64_t handle) {
  constexpr std::size_t most = 0xffff;
  const std::size_t next = std::min(streams_.size(), most - 1);
  return streams_.try_emplace(handle, static_cast<StreamId>(next)).first->second;
}

void SnapshotTimelineMaker::appear(BufferId buffer, Nanoseconds time) {
  made_.schedule.steps.push_back(Allocate{buffer});
  made_.timeline.memory.push_back({time, buffer, true});
}

void SnapshotTimelineMaker::disappear(BufferId buffer, Nanoseconds time) {
  made_.schedule.steps.push_back(Free{buffer, made_.schedule[buffer].stream});
  made_.timeline.memory.push_back({time, buffer, false});
}

// Segments lie anywhere in 2^47 bytes. What was never part of one is left out between them.
void SnapshotTimelineMaker::place_buffers() {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;  // [begin, end)
  for (const SnapshotSegment& segment : snapshot_.segments)
    if (segment.device == static_cast<std::int64_t>(made_.device))
      parts.emplace_back(segment.address, segment.address + segment.size.count);
  for (const SnapshotEvent& event : events_of(snapshot_, made_.device))
    if (event.action == SnapshotAction::SegmentAlloc ||
        event.action == SnapshotAction::SegmentMap || event.action == SnapshotAction::SegmentFree ||
        event.action == SnapshotAction::SegmentUnmap)
      parts.emplace_back(event.address, event.address + event.size.count);
  for (std::size_t b = 0; b < addresses_.size(); ++b)
    parts.emplace_back(addresses_[b], addresses_[b] + made_.schedule.buffers[b].size.count);
  std::ranges::sort(parts);
  struct Part {
    std::int64_t begin, offset;
  };
  std::vector<Part> placed;
  std::int64_t end = -1, sum = 0;  // of the last part
  for (const auto& [from, to] : parts) {
    if (from > end || placed.empty()) placed.push_back({from, sum}), end = from;
    if (to > end) sum += to - end, end = to;
  }
  made_.extent = Bytes{sum};
  made_.offsets.reserve(addresses_.size());
  for (const std::int64_t address : addresses_) {
    const auto part = std::prev(std::ranges::upper_bound(placed, address, {}, &Part::begin));
    made_.offsets.push_back(part->offset + address - part->begin);
  }
}

std::vector<StackGroup> groups_at(const SnapshotTimeline& made, const Peak& top) {
  std::unordered_map<std::uint32_t, StackGroup> groups;
  for (const BufferId id : alive_after(made.schedule, made.timeline, top.event)) {
    const Buffer& buffer = made.schedule[id];
    const StackId stack = made.stack_of[index(buffer.tensor)];
    StackGroup& group = groups[static_cast<std::uint32_t>(stack)];
    group.stack = stack;
    ++group.blocks;
    group.size += buffer.size;
  }
  std::vector<StackGroup> sorted;
  for (const auto& [stack, group] : groups) sorted.push_back(group);
  std::ranges::sort(sorted, [](const StackGroup& a, const StackGroup& b) {
    return a.size != b.size ? a.size > b.size : a.stack < b.stack;
  });
  return sorted;
}

Bytes requested_in(const PoolReplay& pool) {
  Bytes sum;
  for (const auto& [address, block] : pool.blocks()) sum += block.requested;
  return sum;
}

}  // namespace

SnapshotTimeline timeline_of(const MemorySnapshot& snapshot, const std::string& name) {
  return SnapshotTimelineMaker(snapshot, name).make();
}

SnapshotReport report_of(const MemorySnapshot& snapshot, const SnapshotTimeline& made) {
  const auto& events = events_of(snapshot, made.device);
  const Peak top = peak(made.schedule, made.timeline);
  SnapshotReport report;
  report.device = made.device;
  report.events = events.size();
  report.unknown_events = snapshot.unknown_events;
  report.duration = made.timeline.duration;
  report.active_peak = top.bytes;
  report.alive = groups_at(made, top);
  report.devices_with_events = static_cast<std::size_t>(
      std::ranges::count_if(snapshot.events, [](const auto& list) { return !list.empty(); }));
  PoolReplay pool(snapshot, made.device);
  report.blocks_before = pool.blocks().size();
  Bytes allocated, active;
  for (const auto& [address, block] : pool.blocks()) {
    active += block.size;
    if (!block.is_pending) allocated += block.size;
  }
  bool is_found = active == top.bytes;
  const auto note_state = [&](Nanoseconds time) {
    report.at_peak = pool.state();
    report.requested_at_peak = requested_in(pool);
    report.peak_time = time;
  };
  if (is_found) note_state({});
  report.allocated_peak = allocated;
  report.reserved_peak = pool.reserved();
  Clock clock(events);
  for (const SnapshotEvent& event : events) {
    const Nanoseconds time = clock(event);
    const auto change = pool.apply(event);
    const Bytes size = change.block.size;
    if (change.kind == Kind::Appears) active += size, allocated += size;
    if (change.kind == Kind::Pending) allocated -= size;
    if (change.kind == Kind::Disappears) {
      active -= size;
      if (!change.block.is_pending) allocated -= size;
    }
    report.allocated_peak = std::max(report.allocated_peak, allocated);
    report.reserved_peak = std::max(report.reserved_peak, pool.reserved());
    if (!is_found && active == top.bytes) is_found = true, note_state(time);
    constexpr std::size_t most_failures = 100;  // a loop that catches them may have thousands
    if (event.action == SnapshotAction::Oom && report.failures.size() < most_failures)
      report.failures.push_back(
          {time, event.size, Bytes{event.address}, event.stack, pool.state()});
  }
  report.at_end = pool.state();
  report.contradictions = pool.contradictions();
  return report;
}

}  // namespace tidemark::importers
