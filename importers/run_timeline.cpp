// The recording's own times are since 1970; the timeline begins with the first thing that happened.
#include "importers/run_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/quoted.h"
#include "importers/gpu_names.h"
#include "importers/stack_category.h"

namespace tidemark::importers {
namespace {

constexpr std::uint8_t device_memory = 3, managed_memory = 5, static_memory = 6;  // of CUPTI
constexpr std::uint64_t longest_ns = std::uint64_t{1} << 50;  // of a timeline: 13 days

std::string transfer_name(const TransferRow& row) {
  if (row.kind == memset_transfer) return "fill";
  constexpr std::uint8_t pageable = 1;
  return copy_name(row.kind, row.source == pageable || row.target == pageable);
}

/// Which range a moment of a thread lies in: ranges of one thread lie within each other.
class OpenRanges {
 public:
  explicit OpenRanges(const std::vector<RangeRow>& ranges) : ranges_(ranges) {
    for (std::size_t i = 0; i < ranges.size(); ++i) by_thread_[ranges[i].thread].push_back(i);
    for (auto& [thread, list] : by_thread_) {
      std::ranges::sort(list, [&](std::size_t a, std::size_t b) {
        return std::pair(ranges[a].begin, ~ranges[a].end) <
               std::pair(ranges[b].begin, ~ranges[b].end);
      });
      link(list);
    }
  }

  /// The innermost; `none` where there is none.
  std::size_t at(std::uint32_t thread, std::uint64_t time) const {
    const auto list = by_thread_.find(thread);
    if (list == by_thread_.end()) return none;
    const auto begin_of = [&](std::size_t i) { return ranges_[i].begin; };
    const auto next = std::ranges::upper_bound(list->second, time, {}, begin_of);
    if (next == list->second.begin()) return none;
    std::size_t i = *std::prev(next);
    while (i != none && ranges_[i].end < time) i = outer_[i];
    return i;
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

 private:
  void link(const std::vector<std::size_t>& list) {
    outer_.resize(ranges_.size(), none);
    std::vector<std::size_t> open;
    for (const std::size_t i : list) {
      while (!open.empty() && ranges_[open.back()].end <= ranges_[i].begin) open.pop_back();
      if (!open.empty()) outer_[i] = open.back();
      open.push_back(i);
    }
  }

  const std::vector<RangeRow>& ranges_;
  std::map<std::uint32_t, std::vector<std::size_t>> by_thread_;
  std::vector<std::size_t> outer_;
};

class RunReading {
 public:
  RunReading(const RunFile& run, const std::string& name) : run_(run), name_(name) {}
  RunTimeline make() &&;

 private:
  void read_memory();
  void find_device();
  void find_times();
  void see(std::uint64_t begin, std::uint64_t end) {
    first_ = std::min(first_, begin), last_ = std::max(last_, end);
  }
  Nanoseconds since(std::uint64_t time) const {
    return Nanoseconds(static_cast<std::int64_t>(time - first_));
  }
  std::uint64_t first_event_ns() const;
  TimelineBuilder builder() const;
  void add_runs(TimelineBuilder& builder);
  void add_driver_memory(TimelineBuilder& builder);
  void add_ranges();
  std::map<std::int64_t, std::int64_t> parts_of_pytorch() const;
  std::vector<MemoryRow> driver_memory() const;
  void note_work(std::string_view name, Nanoseconds time, std::uint64_t bytes);

  const RunFile& run_;
  const std::string& name_;
  RunTimeline made_;
  std::uint32_t device_ = 0;
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max(), last_ = 0;
  std::vector<std::string> kernel_names_;           // by number
  std::map<std::uint8_t, std::string> copy_names_;  // by kind and who is pageable
  std::unordered_map<std::string_view, RunWork> work_;
};

RunTimeline RunReading::make() && {
  made_.lacks = defects(run_);
  read_memory();
  find_device();
  find_times();
  for (const std::string& name : run_.names) kernel_names_.push_back(kernel_name(name));
  TimelineBuilder building = builder();
  add_runs(building);
  add_driver_memory(building);
  add_ranges();
  made_.recorded = std::move(building).finish();
  made_.recorded.device = fmt::format("cuda:{}", device_);
  for (const MarkRow& mark : run_.marks)
    if (mark.time >= first_ && mark.time <= last_) made_.marks.push_back(since(mark.time));
  std::ranges::sort(made_.marks);
  return std::move(made_);
}

// What PyTorch left may be cut off, or have nothing in it: the rest is still worth showing.
void RunReading::read_memory() {
  if (run_.snapshot.empty()) return;
  try {
    PickleInput input(run_.snapshot, "PyTorch's memory history");
    RunMemory memory{read_memory_snapshot(input), {}};
    memory.made = timeline_of(memory.snapshot, name_);
    made_.memory = std::move(memory);
  } catch (const InputError& error) {
    made_.lacks.emplace_back(error.what());
  }
}

void RunReading::find_device() {
  std::map<std::uint32_t, std::size_t> by_device;
  for (const KernelRow& row : run_.kernels) ++by_device[row.device];
  for (const TransferRow& row : run_.transfers) ++by_device[row.device];
  made_.devices = by_device.size();
  const auto busiest =
      std::ranges::max_element(by_device, {}, [](auto& row) { return row.second; });
  if (busiest != by_device.end())
    device_ = busiest->first;
  else if (made_.memory)
    device_ = static_cast<std::uint32_t>(made_.memory->made.device);
  else if (!run_.memory.empty())
    device_ = run_.memory.front().device;
  if (made_.memory && made_.memory->made.device != device_) {
    made_.lacks.push_back(fmt::format("PyTorch's memory history is of cuda:{}, what ran of cuda:{}",
                                      made_.memory->made.device, device_));
    made_.memory.reset();
  }
  if (made_.devices > 1)
    made_.lacks.push_back(
        fmt::format("{} devices ran something; cuda:{} is shown", made_.devices, device_));
}

std::uint64_t RunReading::first_event_ns() const {
  const MemorySnapshot& snapshot = made_.memory->snapshot;
  if (device_ >= snapshot.events.size() || snapshot.events[device_].empty()) return first_;
  const std::int64_t time_us = snapshot.events[device_].front().time_us;
  constexpr std::int64_t last_us = std::numeric_limits<std::int64_t>::max() / 1000;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(time_us, 0, last_us)) * 1000;
}

void RunReading::find_times() {
  for (const KernelRow& row : run_.kernels)
    if (row.device == device_) see(row.begin, row.end);
  for (const TransferRow& row : run_.transfers)
    if (row.device == device_) see(row.begin, row.end);
  for (const MemoryRow& row : run_.memory)
    if (row.device == device_) see(row.time, row.time);
  if (made_.memory) {
    const std::uint64_t begin = first_event_ns();
    see(begin, begin + static_cast<std::uint64_t>(made_.memory->made.timeline.duration.count()));
  }
  if (first_ > last_) first_ = last_;
  if (last_ - first_ > longest_ns)
    throw InputError(fmt::format(
        "{}: its first and last record are {} apart; need at most 13 days", printable(name_),
        to_text(Nanoseconds(static_cast<std::int64_t>((last_ - first_) / 2 * 2)))));
}

TimelineBuilder RunReading::builder() const {
  if (!made_.memory) return {name_, since(last_)};
  const SnapshotTimeline& memory = made_.memory->made;
  RecordedTimeline begun{.device = {},
                         .trace = memory.trace,
                         .schedule = memory.schedule,
                         .timeline = memory.timeline,
                         .callers = memory.stacks};
  set_categories(begun, made_.memory->snapshot, memory.stack_of);
  return {std::move(begun), since(first_event_ns()), since(last_)};
}

void RunReading::add_runs(TimelineBuilder& builder) {
  std::vector<RecordedSpan> spans;
  for (const KernelRow& row : run_.kernels) {
    if (row.device != device_) continue;
    const std::string& name = kernel_names_[row.name];
    spans.push_back({since(row.begin), since(row.end), row.stream, name, Task::Forward});
    note_work(name, since(row.end) - since(row.begin), 0);
  }
  for (const TransferRow& row : run_.transfers) {
    if (row.device != device_) continue;
    const std::string text = transfer_name(row);
    const auto key = static_cast<std::uint8_t>(row.kind * 2 + text.ends_with("(pageable)"));
    const std::string& name = copy_names_.try_emplace(key, text).first->second;
    spans.push_back({since(row.begin), since(row.end), row.stream, name, Task::Forward});
    note_work(name, since(row.end) - since(row.begin), row.bytes);
  }
  builder.add_runs(std::move(spans));
  for (const auto& [name, work] : work_) made_.work.push_back(work);
  std::ranges::sort(made_.work, [](const RunWork& a, const RunWork& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
}

void RunReading::note_work(std::string_view name, Nanoseconds time, std::uint64_t bytes) {
  RunWork& work = work_[name];
  if (work.count == 0) work.name = name;
  ++work.count;
  work.time += time;
  constexpr std::uint64_t most = std::uint64_t{1} << 40;  // of one copy: more no device has
  work.moved += Bytes{static_cast<std::int64_t>(std::min(bytes, most))};
}

// Its segments are of the driver, too. Parts of them, as begin and end, that do not meet.
std::map<std::int64_t, std::int64_t> RunReading::parts_of_pytorch() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  if (!made_.memory) return {};
  const MemorySnapshot& snapshot = made_.memory->snapshot;
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device == device_)
      parts.emplace_back(segment.address, segment.address + segment.size.count);
  if (device_ < snapshot.events.size())
    for (const SnapshotEvent& event : snapshot.events[device_])
      if (event.action == SnapshotAction::SegmentAlloc ||
          event.action == SnapshotAction::SegmentMap ||
          event.action == SnapshotAction::SegmentFree ||
          event.action == SnapshotAction::SegmentUnmap)
        parts.emplace_back(event.address, event.address + event.size.count);
  std::ranges::sort(parts);
  std::map<std::int64_t, std::int64_t> merged;
  for (const auto& [begin, end] : parts) {
    const auto last = merged.empty() ? merged.end() : std::prev(merged.end());
    if (last != merged.end() && begin <= last->second)
      last->second = std::max(last->second, end);
    else
      merged.emplace(begin, end);
  }
  return merged;
}

std::vector<MemoryRow> RunReading::driver_memory() const {
  std::vector<MemoryRow> rows;
  for (const MemoryRow& row : run_.memory)
    if (row.device == device_ && (row.memory == device_memory || row.memory == managed_memory ||
                                  row.memory == static_memory))
      rows.push_back(row);
  std::ranges::stable_sort(rows, {}, &MemoryRow::time);
  const auto parts = parts_of_pytorch();
  std::erase_if(rows, [&](const MemoryRow& row) {
    const auto address = static_cast<std::int64_t>(row.address);
    const auto next = parts.upper_bound(address);
    return next != parts.begin() && address < std::prev(next)->second;
  });
  return rows;
}

std::string name_of(const MemoryRow& row) {
  if (row.memory == static_memory) return static_memory_name;
  if (row.memory == managed_memory) return managed_memory_name;
  return row.is_async != 0 ? pool_memory_name : driver_memory_name;
}

void RunReading::add_driver_memory(TimelineBuilder& builder) {
  constexpr std::uint8_t allocated = 1;
  constexpr std::uint64_t most = std::uint64_t{1} << 48;  // what addresses can name
  std::unordered_map<std::uint64_t, BufferId> present;
  Bytes now;
  for (const MemoryRow& row : driver_memory()) {
    const auto found = present.find(row.address);
    if (row.operation == allocated && found == present.end()) {
      const auto bytes = static_cast<std::int64_t>(std::min(row.bytes, most));
      const BufferId id = builder.add_buffer(bytes, builder.tensor(name_of(row), "", bytes));
      present.emplace(row.address, id);
      builder.appear(id, since(row.time));
      now += Bytes{bytes};
      made_.outside = std::max(made_.outside, now);
    } else if (row.operation != allocated && found != present.end()) {
      builder.disappear(found->second, since(row.time));
      now -= builder.size(found->second);
      present.erase(found);
    }
  }
}

void RunReading::add_ranges() {
  const OpenRanges open(run_.ranges);
  std::map<std::uint32_t, RunRange> by_name;
  for (const RangeRow& row : run_.ranges) {
    RunRange& range = by_name[row.name];
    range.name = printable(run_.names[row.name], 120);
    ++range.count;
    range.host += Nanoseconds(static_cast<std::int64_t>(std::min(row.end - row.begin, longest_ns)));
  }
  std::unordered_map<std::uint32_t, std::size_t> range_of;  // by correlation
  for (const LaunchRow& row : run_.launches)
    if (const std::size_t i = open.at(row.thread, row.begin); i != OpenRanges::none)
      range_of[row.correlation] = i;
  const auto add = [&](const auto& row) {
    const auto range = range_of.find(row.correlation);
    if (row.device != device_ || range == range_of.end()) return;
    by_name[run_.ranges[range->second].name].gpu += since(row.end) - since(row.begin);
  };
  for (const KernelRow& row : run_.kernels) add(row);
  for (const TransferRow& row : run_.transfers) add(row);
  for (const auto& [name, range] : by_name) made_.ranges.push_back(range);
  std::ranges::sort(made_.ranges, [](const RunRange& a, const RunRange& b) {
    return a.gpu != b.gpu ? a.gpu > b.gpu : a.host != b.host ? a.host > b.host : a.name < b.name;
  });
}

}  // namespace

RunTimeline timeline_of(const RunFile& run, const std::string& name) {
  return RunReading(run, name).make();
}

}  // namespace tidemark::importers
