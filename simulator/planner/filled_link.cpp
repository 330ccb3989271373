// The step is simulated once; its clock says when the link is free for what.
#include "simulator/planner/filled_link.h"

#include <algorithm>
#include <optional>

#include "simulator/graph/last_uses.h"
#include "simulator/lower.h"
#include "simulator/planner/local_plan.h"
#include "simulator/simulate.h"

namespace tidemark {
namespace {

constexpr Nanoseconds not_run = Nanoseconds::max();

/// When a micro-batch runs what.
struct Clock {
  std::vector<Nanoseconds> begin, end;  ///< by op: of its forward
  std::vector<Nanoseconds> gradients;   ///< by op: when its gradients begin
  std::vector<Nanoseconds> needed;      ///< by storage: when the backward first reads its value
};

Clock clock_of(const Trace& trace, const Schedule& schedule, const Timeline& timeline) {
  Clock clock;
  for (auto* by_op : {&clock.begin, &clock.end, &clock.gradients})
    by_op->assign(trace.ops.size(), not_run);
  clock.needed.assign(trace.tensors.size(), not_run);
  bool is_backward = false;
  for (const TimedRun& timed : timeline.runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run || run->op == no_op) continue;
    const std::size_t op = index(run->op);
    if (run->task == Task::Forward) {
      if (is_backward) break;  // of the next micro-batch
      clock.begin[op] = timed.begin, clock.end[op] = timed.end;
      continue;
    }
    is_backward = is_backward || run->task == Task::Seed || run->task == Task::Backward;
    if (!is_backward) continue;
    if (run->task == Task::Backward)
      clock.gradients[op] = std::min(clock.gradients[op], timed.begin);
    for (const BufferId operand : schedule.operands_of(*run)) {
      const Buffer& buffer = schedule[operand];
      if (buffer.role != Role::Value || buffer.tensor == no_tensor) continue;
      Nanoseconds& needed = clock.needed[index(buffer.tensor)];
      needed = std::min(needed, timed.begin);
    }
  }
  return clock;
}

/// At which copies can be waited for, or begin.
struct Turn {
  Nanoseconds begin;
  OpId op;
};

std::vector<Turn> turns_of(const std::vector<Nanoseconds>& begins) {
  std::vector<Turn> turns;
  for (std::size_t op = 0; op < begins.size(); ++op)
    if (begins[op] != not_run) turns.push_back({begins[op], static_cast<OpId>(op)});
  std::ranges::sort(turns, {}, &Turn::begin);
  return turns;
}

struct Copy {
  TensorId storage;
  Nanoseconds time;  ///< on the link, each way
  OpId left_by;
  Nanoseconds needed;
};

// What does not have left when the forward's last op begins stays, and smaller ones come before it.
std::vector<Copy> copies_out(const PlannedStep& step, const Clock& clock, const CostModel& costs,
                             const std::vector<TensorId>& may_leave, Bytes most) {
  const Trace& trace = *step.trace;
  const TensorsByOp ends = last_forward_uses(trace, step.derived->needs);
  const std::vector<Turn> turns = turns_of(clock.begin);
  std::vector<bool> may(trace.tensors.size());
  for (const TensorId storage : may_leave)
    may[index(storage)] = step.plan.decisions[index(storage)].action == Action::Keep &&
                          clock.needed[index(storage)] != not_run;
  std::vector<Copy> copies;
  Nanoseconds now{}, link_free{};
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    if (clock.end[op] != not_run) now = clock.end[op];
    for (const TensorId storage : ends(op)) {
      const Bytes bytes = size(trace[storage]);
      if (!may[index(storage)] || bytes > most) continue;
      const Nanoseconds time = costs.of_copy(bytes).time;
      const Nanoseconds end = std::max(now, link_free) + time;
      const auto turn = std::ranges::lower_bound(turns, end, {}, &Turn::begin);
      if (turn == turns.end()) continue;
      copies.push_back({storage, time, turn->op, clock.needed[index(storage)]});
      link_free = end;
      most -= bytes;
    }
  }
  return copies;
}

// From the last one needed: each before the gradients of an op of its own, because copies that
// begin together come in the order of their tensors. What would have to come back before the
// backward begins stays.
void bring_back(std::vector<Copy> copies, const Clock& clock, Plan& plan) {
  std::ranges::stable_sort(copies, std::greater<>(), &Copy::needed);
  std::vector<Turn> turns = turns_of(clock.gradients);
  Nanoseconds link_taken = not_run;
  for (const Copy& copy : copies) {
    const Nanoseconds begin = std::min(copy.needed, link_taken) - copy.time;
    const auto after = std::ranges::upper_bound(turns, begin, {}, &Turn::begin);
    if (after == turns.begin()) continue;
    offload(copy.storage, copy.left_by, std::prev(after)->op, plan);
    turns.erase(std::prev(after), turns.end());
    link_taken = begin;
  }
}

}  // namespace

Plan fill_link(const PlannedStep& step, const std::vector<TensorId>& may_leave,
               const Device& device, Bytes most) {
  const Schedule schedule = lower(step);
  const CostModel costs(*step.trace, step.derived->needs, device);
  const Clock clock = clock_of(*step.trace, schedule, simulate(costs, schedule));
  Plan plan = step.plan;
  bring_back(copies_out(step, clock, costs, may_leave, most), clock, plan);
  return plan;
}

}  // namespace tidemark
