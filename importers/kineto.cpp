// Lanes are the streams of the busiest GPU, or threads with their outermost operators. Who launched
// a kernel, and who allocated, are the operators that were under way on the thread then.
#include "importers/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/quoted.h"
#include "importers/kineto_events.h"

namespace tidemark::importers {
namespace {

/// What was under way on each thread, at any time: operators lie within each other.
class Callers {
 public:
  explicit Callers(const KinetoEvents& events) : events_(events) {
    for (std::size_t i = 0; i < events.operators.size(); ++i)
      by_thread_[events.operators[i].lane].push_back(static_cast<std::uint32_t>(i));
    for (auto& [thread, list] : by_thread_) {
      std::ranges::sort(list, [&](std::uint32_t a, std::uint32_t b) {
        const KinetoSpan &first = events.operators[a], &second = events.operators[b];
        return first.begin_ns != second.begin_ns ? first.begin_ns < second.begin_ns
               : first.end_ns != second.end_ns   ? first.end_ns > second.end_ns
                                                 : a < b;
      });
      link(list);
    }
  }

  /// Operators, innermost first, as places in the events' list; at most so many as people read.
  std::vector<std::uint32_t> at(std::int64_t thread, std::int64_t time) const {
    constexpr std::size_t most = 64;
    std::vector<std::uint32_t> found;
    const auto list = by_thread_.find(thread);
    if (list == by_thread_.end()) return found;
    const auto begin_of = [&](std::uint32_t i) { return events_.operators[i].begin_ns; };
    const auto next = std::ranges::upper_bound(list->second, time, {}, begin_of);
    if (next == list->second.begin()) return found;
    for (std::uint32_t i = *std::prev(next); i != none && found.size() < most; i = outer_[i])
      if (events_.operators[i].end_ns >= time) found.push_back(i);
    return found;
  }

  /// The outermost operators of each thread.
  std::vector<std::uint32_t> outermost() const {
    std::vector<std::uint32_t> found;
    for (const auto& [thread, list] : by_thread_)
      for (const std::uint32_t i : list)
        if (outer_[i] == none) found.push_back(i);
    return found;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  void link(const std::vector<std::uint32_t>& list) {
    outer_.resize(events_.operators.size(), none);
    std::vector<std::uint32_t> open;
    for (const std::uint32_t i : list) {
      while (!open.empty() &&
             events_.operators[open.back()].end_ns <= events_.operators[i].begin_ns)
        open.pop_back();
      if (!open.empty()) outer_[i] = open.back();
      open.push_back(i);
    }
  }

  const KinetoEvents& events_;
  std::map<std::int64_t, std::vector<std::uint32_t>> by_thread_;
  std::vector<std::uint32_t> outer_;  // by operator
};

class KinetoTimelineMaker {
 public:
  KinetoTimelineMaker(KinetoEvents events, const std::string& name)
      : events_(std::move(events)), callers_(events_) {
    trace_.model = name;
    trace_.step.batch = 0;  // unknown
  }
  KinetoTimeline make() &&;

 private:
  void add_runs();
  void sum_up_streams();
  void add_run(const KinetoSpan& span, StreamId stream, Task task);
  Task task_of(const std::vector<std::uint32_t>& callers) const;
  std::vector<KinetoAllocation> allocations() const;
  void add_memory();
  BufferId add_buffer(std::int64_t bytes, TensorId tensor);
  TensorId tensor_of(const KinetoAllocation& allocation);
  TensorId tensor_called(const std::string& name, const std::string& callers, std::int64_t bytes);
  const std::string& name_of(std::uint32_t op) const {
    return events_.names[events_.operators[op].name];
  }

  KinetoEvents events_;
  Callers callers_;
  KinetoTimeline made_;
  Trace trace_;
  std::unordered_map<std::uint32_t, OpId> ops_;  // by name
  std::unordered_map<std::string, TensorId> tensors_;
  std::vector<Nanoseconds> busy_until_;  // by stream
  std::int64_t all_bytes_ = 0;
};

KinetoTimeline KinetoTimelineMaker::make() && {
  made_.timeline.duration = Nanoseconds{events_.duration_ns};
  add_runs();
  sum_up_streams();
  add_memory();
  made_.trace = std::make_shared<const Trace>(std::move(trace_));
  return std::move(made_);
}

void KinetoTimelineMaker::add_runs() {
  std::map<std::int64_t, std::size_t> by_device;
  for (const KinetoSpan& kernel : events_.kernels) ++by_device[kernel.device];
  std::vector<std::pair<KinetoSpan, Task>> spans;
  if (by_device.empty()) {
    made_.device = "cpu";
    for (const std::uint32_t op : callers_.outermost())
      spans.emplace_back(events_.operators[op], task_of({op}));
  } else {
    const auto busiest =
        std::ranges::max_element(by_device, {}, [](auto& row) { return row.second; });
    made_.device = fmt::format("cuda:{}", busiest->first);
    for (const KinetoSpan& kernel : events_.kernels) {
      if (kernel.device != busiest->first) continue;
      const auto launch = events_.launches.find(kernel.correlation);
      spans.emplace_back(kernel,
                         launch == events_.launches.end()
                             ? Task::Forward
                             : task_of(callers_.at(launch->second.thread, launch->second.time_ns)));
    }
  }
  std::ranges::stable_sort(spans, {}, [](const auto& pair) { return pair.first.begin_ns; });
  std::map<std::int64_t, StreamId> streams;
  for (const auto& [span, task] : spans) streams.try_emplace(span.lane);
  std::size_t next = 0;
  for (auto& [lane, stream] : streams)
    stream = static_cast<StreamId>(std::min<std::size_t>(next++, 0xfffe));
  made_.schedule.streams = std::clamp<std::size_t>(next, 1, 0xffff);
  busy_until_.resize(made_.schedule.streams);
  for (const auto& [span, task] : spans) add_run(span, streams[span.lane], task);
}

// Of one stream they follow one another: times are rounded, and may meet.
void KinetoTimelineMaker::add_run(const KinetoSpan& span, StreamId stream, Task task) {
  const auto [op, is_new] = ops_.try_emplace(span.name, static_cast<OpId>(trace_.ops.size()));
  if (is_new) {
    const std::string name = printable(events_.names[span.name], 120);
    trace_.ops.push_back({.name = name,
                          .kind = OpKind::Opaque,
                          .opaque = static_cast<OpaqueId>(trace_.opaque_rows.size())});
    trace_.opaque_rows.push_back({.operation = name});
  }
  Nanoseconds& busy = busy_until_[index(stream)];
  const Nanoseconds begin = std::max(busy, Nanoseconds{span.begin_ns}), end{span.end_ns};
  if (begin > end) return;
  busy = end;
  made_.timeline.runs.push_back(
      {static_cast<std::uint32_t>(made_.schedule.steps.size()), stream, begin, end});
  made_.schedule.steps.push_back(Run{task, stream, op->second, 0, 0, 0});
}

// How long no stream was busy, and how long two or more were.
void KinetoTimelineMaker::sum_up_streams() {
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

// By who was under way: the autograd engine, or an optimizer.
Task KinetoTimelineMaker::task_of(const std::vector<std::uint32_t>& callers) const {
  Task task = Task::Forward;
  for (const std::uint32_t op : callers) {
    if (name_of(op).starts_with("autograd::engine::")) task = Task::Backward;
    if (name_of(op).starts_with("Optimizer.step#")) task = Task::Optimizer;
  }
  return task;
}

// Of the GPU with most of them; of the CPU where no GPU has any.
std::vector<KinetoAllocation> KinetoTimelineMaker::allocations() const {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> by_device;
  for (const KinetoAllocation& one : events_.allocations) ++by_device[one.device];
  const auto chosen = std::ranges::max_element(
      by_device, {}, [](const auto& row) { return std::pair(row.first.first != 0, row.second); });
  std::vector<KinetoAllocation> found;
  for (const KinetoAllocation& one : events_.allocations)
    if (one.device == chosen->first && one.bytes != 0) found.push_back(one);
  std::ranges::stable_sort(
      found, {}, [](const KinetoAllocation& one) { return std::pair(one.time_ns, one.order); });
  return found;
}

void KinetoTimelineMaker::add_memory() {
  const std::vector<KinetoAllocation> all = allocations();
  if (all.empty()) return;
  // What is freed and was never allocated was there before; what the profiler counts beyond that
  // stays from the beginning to the end.
  std::unordered_map<std::int64_t, BufferId> present;
  std::unordered_map<std::int64_t, bool> seen;
  std::int64_t before = all.front().total - all.front().bytes;
  const auto earlier = [&](std::int64_t bytes) {
    return tensor_called("(in use before the profile)", "", bytes);
  };
  for (const KinetoAllocation& one : all)
    if (seen.try_emplace(one.address, true).second && one.bytes < 0) {
      const BufferId id = add_buffer(-one.bytes, earlier(-one.bytes));
      present.emplace(one.address, id);
      made_.schedule.steps.push_back(Allocate{id});
      made_.timeline.memory.push_back({Nanoseconds{}, id, true});
      before += one.bytes;
    }
  if (before > 0) {
    const BufferId id = add_buffer(before, earlier(before));
    made_.schedule.buffers[index(id)].persistent = true;
    made_.timeline.baseline[static_cast<std::size_t>(Category::Unknown)] += Bytes{before};
  }
  for (const KinetoAllocation& one : all) {
    const Nanoseconds time{one.time_ns};
    if (one.bytes > 0) {
      if (present.contains(one.address)) continue;  // its end was not recorded: it goes on
      const BufferId id = add_buffer(one.bytes, tensor_of(one));
      present.emplace(one.address, id);
      made_.schedule.steps.push_back(Allocate{id});
      made_.timeline.memory.push_back({time, id, true});
    } else if (const auto found = present.find(one.address); found != present.end()) {
      made_.schedule.steps.push_back(Free{found->second, StreamId::Compute});
      made_.timeline.memory.push_back({time, found->second, false});
      present.erase(found);
    }
  }
}

BufferId KinetoTimelineMaker::add_buffer(std::int64_t bytes, TensorId tensor) {
  if (bytes > largest_size - all_bytes_)
    throw InputError(fmt::format("more than {} in all allocations together; no run has so much",
                                 to_text(Bytes{largest_size})));
  all_bytes_ += bytes;
  made_.schedule.buffers.push_back(
      {.size = Bytes{bytes}, .tensor = tensor, .category = Category::Unknown});
  return static_cast<BufferId>(made_.schedule.buffers.size() - 1);
}

// Every tensor comes from aten::empty or the like: who called that is of interest.
TensorId KinetoTimelineMaker::tensor_of(const KinetoAllocation& allocation) {
  const auto callers = callers_.at(allocation.thread, allocation.time_ns);
  std::string name, all;
  for (const std::uint32_t op : callers) {
    const std::string& text = name_of(op);
    const bool is_allocator = text.starts_with("aten::empty") ||
                              text.starts_with("aten::resize_") ||
                              text.starts_with("aten::new_empty");
    if (name.empty() && (!is_allocator || op == callers.back())) name = printable(text, 120);
    all += (all.empty() ? "" : " ← ") + printable(text, 120);
  }
  return tensor_called(name.empty() ? "(outside of operators)" : name, all, allocation.bytes);
}

TensorId KinetoTimelineMaker::tensor_called(const std::string& name, const std::string& callers,
                                            std::int64_t bytes) {
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  const auto [place, is_new] =
      tensors_.try_emplace(fmt::format("{}\n{}\n{}", name, callers, bytes), id);
  if (is_new) {
    trace_.tensors.push_back({.name = name,
                              .shape = {bytes},
                              .dtype = DType::UInt8,
                              .category = Category::Unknown,
                              .storage = id});
    made_.callers.push_back(callers);
  }
  return place->second;
}

}  // namespace

KinetoTimeline read_kineto(JsonView root, const std::string& name) {
  return KinetoTimelineMaker(read_kineto_events(root), name).make();
}

bool is_kineto(const std::string& path) {
  constexpr std::size_t enough = 1 << 16;  // properties of eight devices stand before the events
  if (!path.ends_with(".json")) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(enough, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return head.find("\"traceEvents\"") != std::string::npos &&
         head.find("\"schemaVersion\"") != std::string::npos;
}

}  // namespace tidemark::importers
