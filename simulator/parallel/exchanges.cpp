// Collectives of the graph are those of data-parallel ranks; ops say by their kind what they are.
#include "simulator/parallel/exchanges.h"

#include <algorithm>

namespace tidemark {
namespace {

std::optional<Task> forward_exchange(OpKind kind) {
  if (kind == OpKind::AllReduce) return Task::AllReduce;
  if (kind == OpKind::AllGather) return Task::AllGather;
  if (kind == OpKind::ReduceScatter) return Task::ReduceScatter;
  return {};
}

std::optional<Task> backward_exchange(OpKind kind) {
  if (kind == OpKind::Replicate) return Task::AllReduce;
  if (kind == OpKind::AllGather) return Task::ReduceScatter;
  if (kind == OpKind::ReduceScatter || kind == OpKind::Scatter) return Task::AllGather;
  return {};
}

std::optional<Exchange> exchange_of_op(const Trace& trace, const Run& run) {
  if (run.op == no_op) return {};
  const Op& op = trace[run.op];
  std::optional<Task> task;
  if (run.task == Task::Forward || run.task == Task::Recompute) task = forward_exchange(op.kind);
  if (run.task == Task::Backward) task = backward_exchange(op.kind);
  if (!task) return {};
  return Exchange{*task, Axis::Tensor,
                  std::max(size(trace[trace.inputs(op)[0]]), size(trace[trace.outputs(op)[0]]))};
}

Bytes total(const Schedule& schedule, std::span<const BufferId> buffers) {
  Bytes sum;
  for (const BufferId buffer : buffers) sum += schedule[buffer].size;
  return sum;
}

}  // namespace

std::optional<Exchange> exchange_of(const Trace& trace, const Schedule& schedule, const Run& run) {
  if (!is_collective(run.task)) return exchange_of_op(trace, run);
  return Exchange{
      run.task, Axis::Data,
      std::max(total(schedule, schedule.reads(run)), total(schedule, schedule.writes(run)))};
}

}  // namespace tidemark
