// Adds up runs in a table of tasks by kinds of op for each stream; copies have rows of their own.
#include "simulator/diff/time_groups.h"

#include <algorithm>
#include <tuple>

#include "traces/op_kind.h"

namespace tidemark::diff {
namespace {

// Rows of the sums: the tasks of runs, then the two copies. Columns: kinds of ops, then none.
constexpr std::size_t copy_out = tasks.size(), copy_in = copy_out + 1, task_count = copy_in + 1;
constexpr std::size_t no_kind = op_rows.size(), kind_count = no_kind + 1;

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
  std::vector<Sum> sums(schedule.streams * task_count * kind_count);
  for (const TimedRun& timed : timeline.runs) {
    const Step& step = schedule.steps[timed.step];
    const Run* run = std::get_if<Run>(&step);
    const std::size_t task = run ? static_cast<std::size_t>(run->task)
                             : std::holds_alternative<CopyOut>(step) ? copy_out
                                                                     : copy_in;
    const bool has_op = run && run->op != no_op;
    const std::size_t kind = has_op ? static_cast<std::size_t>(trace[run->op].kind) : no_kind;
    Sum& sum = sums[(index(timed.stream) * task_count + task) * kind_count + kind];
    ++sum.runs;
    sum.time += timed.end - timed.begin;
  }
  std::vector<TimeGroup> groups;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].runs == 0) continue;
    const std::size_t kind = i % kind_count, task = i / kind_count % task_count;
    groups.push_back(
        {task_name(task), kind == no_kind ? std::string() : std::string(op_rows[kind].name),
         static_cast<std::int64_t>(i / kind_count / task_count), sums[i].runs, sums[i].time});
  }
  std::ranges::sort(groups, [](const TimeGroup& a, const TimeGroup& b) {
    return std::tie(b.time, a.task, a.op, a.stream) < std::tie(a.time, b.task, b.op, b.stream);
  });
  return groups;
}

}  // namespace tidemark::diff
