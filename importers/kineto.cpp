// Lanes are the streams of the busiest GPU, or threads with their outermost operators. Who launched
// a kernel, and who allocated, are the operators that were under way on the thread then.
#include "importers/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/gzip.h"
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

class KinetoReading {
 public:
  KinetoReading(KinetoEvents events, const std::string& name)
      : events_(std::move(events)),
        callers_(events_),
        builder_(name, Nanoseconds{events_.duration_ns}) {}
  RecordedTimeline make() &&;

 private:
  std::string add_runs();
  RecordedSpan span_of(const KinetoSpan& span, Task task) const;
  Task task_of(const std::vector<std::uint32_t>& callers) const;
  std::vector<KinetoAllocation> allocations() const;
  void add_memory();
  TensorId tensor_of(const KinetoAllocation& allocation);
  const std::string& name_of(std::uint32_t op) const {
    return events_.names[events_.operators[op].name];
  }

  KinetoEvents events_;
  Callers callers_;
  TimelineBuilder builder_;
};

RecordedTimeline KinetoReading::make() && {
  const std::string device = add_runs();
  add_memory();
  RecordedTimeline made = std::move(builder_).finish();
  made.device = device;
  return made;
}

// Returns whose runs they are.
std::string KinetoReading::add_runs() {
  std::map<std::int64_t, std::size_t> by_device;
  for (const KinetoSpan& kernel : events_.kernels) ++by_device[kernel.device];
  std::vector<RecordedSpan> spans;
  if (by_device.empty()) {
    for (const std::uint32_t op : callers_.outermost())
      spans.push_back(span_of(events_.operators[op], task_of({op})));
    builder_.add_runs(std::move(spans));
    return "cpu";
  }
  const auto busiest =
      std::ranges::max_element(by_device, {}, [](auto& row) { return row.second; });
  for (const KinetoSpan& kernel : events_.kernels) {
    if (kernel.device != busiest->first) continue;
    const auto launch = events_.launches.find(kernel.correlation);
    spans.push_back(
        span_of(kernel, launch == events_.launches.end()
                            ? Task::Forward
                            : task_of(callers_.at(launch->second.thread, launch->second.time_ns))));
  }
  builder_.add_runs(std::move(spans));
  return fmt::format("cuda:{}", busiest->first);
}

RecordedSpan KinetoReading::span_of(const KinetoSpan& span, Task task) const {
  return {Nanoseconds{span.begin_ns}, Nanoseconds{span.end_ns}, span.lane, events_.names[span.name],
          task};
}

// By who was under way: the autograd engine, or an optimizer.
Task KinetoReading::task_of(const std::vector<std::uint32_t>& callers) const {
  Task task = Task::Forward;
  for (const std::uint32_t op : callers) {
    if (name_of(op).starts_with("autograd::engine::")) task = Task::Backward;
    if (name_of(op).starts_with("Optimizer.step#")) task = Task::Optimizer;
  }
  return task;
}

// Of the GPU with most of them; of the CPU where no GPU has any.
std::vector<KinetoAllocation> KinetoReading::allocations() const {
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

void KinetoReading::add_memory() {
  const std::vector<KinetoAllocation> all = allocations();
  if (all.empty()) return;
  // What is freed and was never allocated was there before; what the profiler counts beyond that
  // stays from the beginning to the end.
  std::unordered_map<std::int64_t, BufferId> present;
  std::unordered_map<std::int64_t, bool> seen;
  std::int64_t before = all.front().total - all.front().bytes;
  const auto earlier = [&](std::int64_t bytes) {
    return builder_.add_buffer(bytes, builder_.tensor("(in use before the profile)", "", bytes));
  };
  for (const KinetoAllocation& one : all)
    if (seen.try_emplace(one.address, true).second && one.bytes < 0) {
      const BufferId id = earlier(-one.bytes);
      present.emplace(one.address, id);
      builder_.appear(id, Nanoseconds{});
      before += one.bytes;
    }
  if (before > 0) builder_.stay(earlier(before));
  for (const KinetoAllocation& one : all) {
    const Nanoseconds time{one.time_ns};
    if (one.bytes > 0) {
      if (present.contains(one.address)) continue;  // its end was not recorded: it goes on
      const BufferId id = builder_.add_buffer(one.bytes, tensor_of(one));
      present.emplace(one.address, id);
      builder_.appear(id, time);
    } else if (const auto found = present.find(one.address); found != present.end()) {
      builder_.disappear(found->second, time);
      present.erase(found);
    }
  }
}

// Every tensor comes from aten::empty or the like: who called that is of interest.
TensorId KinetoReading::tensor_of(const KinetoAllocation& allocation) {
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
  return builder_.tensor(name.empty() ? "(outside of operators)" : name, all, allocation.bytes);
}

}  // namespace

RecordedTimeline read_kineto(JsonView root, const std::string& name) {
  return KinetoReading(read_kineto_events(root), name).make();
}

bool is_kineto(const std::string& path) {
  constexpr std::size_t enough = 1 << 16;  // properties of eight devices stand before the events
  if (!path.ends_with(".json") && !path.ends_with(".json.gz")) return false;
  const std::string head = first_bytes(path, enough);
  return head.find("\"traceEvents\"") != std::string::npos &&
         head.find("\"schemaVersion\"") != std::string::npos;
}

}  // namespace tidemark::importers
