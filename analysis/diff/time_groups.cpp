// Adds up runs in a table of tasks by kinds of op for each stream; copies have rows of their own.
#include "analysis/diff/time_groups.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "traces/op_kind.h"

namespace tidemark::diff {
namespace {

// Rows of the sums: the tasks of runs, then the two copies.
constexpr std::size_t copy_out = tasks.size(), copy_in = copy_out + 1, task_count = copy_in + 1;

/// Columns of the sums: no op, the kinds of ops, then each operation of opaque ones.
class Columns {
 public:
  explicit Columns(const Trace& trace) : trace_(trace) {
    for (const OpaqueRow& row : trace.opaque_rows)
      if (numbers_.try_emplace(row.operation, names_.size()).second)
        names_.push_back(row.operation);
  }

  std::size_t count() const { return names_.size(); }
  std::string_view operator[](std::size_t column) const { return names_[column]; }
  std::size_t of(const Op& op) const {
    const OpaqueRow* row = opaque_row(trace_, op);
    return row ? numbers_.at(row->operation) : static_cast<std::size_t>(op.kind) + 1;
  }

 private:
  static std::vector<std::string_view> names_of_kinds() {
    std::vector<std::string_view> names = {""};
    for (const OpRow& row : op_rows) names.push_back(row.name);
    return names;
  }

  const Trace& trace_;
  std::vector<std::string_view> names_ = names_of_kinds();
  std::unordered_map<std::string_view, std::size_t> numbers_;
};

struct Sum {
  std::int64_t runs = 0;
  Nanoseconds time{};
};

std::string task_name(std::size_t task) {
  if (task == copy_out) return "copy to the host";
  if (task == copy_in) return "copy from the host";
  return std::string(tasks[task].name);
}

}  // namespace

std::string name_of(const TimeGroup& group) {
  return group.op.empty() ? group.task : group.task + " of " + group.op;
}

std::vector<TimeGroup> time_groups(const Trace& trace, const Schedule& schedule,
                                   const Timeline& timeline) {
  const Columns columns(trace);
  std::vector<Sum> sums(schedule.streams * task_count * columns.count());
  for (const TimedRun& timed : timeline.runs) {
    const Step& step = schedule.steps[timed.step];
    const Run* run = std::get_if<Run>(&step);
    const std::size_t task = run ? static_cast<std::size_t>(run->task)
                             : std::holds_alternative<CopyOut>(step) ? copy_out
                                                                     : copy_in;
    const bool has_op = run && run->op != no_op;
    const std::size_t column = has_op ? columns.of(trace[run->op]) : 0;
    Sum& sum = sums[(index(timed.stream) * task_count + task) * columns.count() + column];
    ++sum.runs;
    sum.time += timed.end - timed.begin;
  }
  std::vector<TimeGroup> groups;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].runs == 0) continue;
    const std::size_t column = i % columns.count(), row = i / columns.count();
    groups.push_back({task_name(row % task_count), std::string(columns[column]),
                      static_cast<std::int64_t>(row / task_count), sums[i].runs, sums[i].time});
  }
  std::ranges::sort(groups, [](const TimeGroup& a, const TimeGroup& b) {
    return std::tie(b.time, a.task, a.op, a.stream) < std::tie(a.time, b.task, b.op, b.stream);
  });
  return groups;
}

}  // namespace tidemark::diff
