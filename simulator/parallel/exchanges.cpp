// Collectives of the graph are those of data-parallel ranks; ops say by their kind what they are.
// What is sent takes the sender's time; who receives it waits for no longer than that.
#include "simulator/parallel/exchanges.h"

#include <algorithm>

#include "simulator/parallel/shards.h"
#include "traces/exchange_axis.h"
#include "traces/expert_ops.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

std::optional<Pattern> forward_pattern(OpKind kind) {
  if (kind == OpKind::AllReduce) return Pattern::AllReduce;
  if (kind == OpKind::AllGather) return Pattern::AllGather;
  if (kind == OpKind::ReduceScatter) return Pattern::ReduceScatter;
  if (kind == OpKind::Send) return Pattern::Send;
  return {};
}

std::optional<Pattern> backward_pattern(OpKind kind) {
  if (kind == OpKind::Replicate) return Pattern::AllReduce;
  if (kind == OpKind::AllGather) return Pattern::ReduceScatter;
  if (kind == OpKind::ReduceScatter || kind == OpKind::Scatter) return Pattern::AllGather;
  if (kind == OpKind::Receive) return Pattern::Send;
  return {};
}

std::optional<Pattern> expert_pattern(std::optional<ExpertOp> op, bool is_forward) {
  if (op == ExpertOp::Exchange) return Pattern::AllToAll;
  const Pattern there = is_forward ? Pattern::AllGather : Pattern::ReduceScatter;
  const Pattern back = is_forward ? Pattern::ReduceScatter : Pattern::AllGather;
  if (op == ExpertOp::GatherTokens) return there;
  if (op == ExpertOp::ScatterTokens) return back;
  return {};
}

std::optional<Exchange> exchange_of_op(const Trace& trace, const Run& run) {
  // What else is done for an op, adding its gradient to another, is within the rank.
  const bool is_forward = run.task == Task::Forward || run.task == Task::Recompute;
  if (run.op == no_op || (!is_forward && run.task != Task::Backward)) return {};
  const Op& op = trace[run.op];
  const auto larger = [&] {
    return std::max(size(trace[trace.inputs(op)[0]]), size(trace[trace.outputs(op)[0]]));
  };
  if (const auto among_experts = expert_pattern(expert_op(trace, op), is_forward))
    return Exchange{*among_experts, Axis::Data, larger(), Peers::SharingExperts};
  if (exchanges_heads(trace, op))
    return Exchange{Pattern::AllToAll, Axis::Context, size(trace[trace.inputs(op)[0]])};
  const auto pattern = is_forward ? forward_pattern(op.kind) : backward_pattern(op.kind);
  if (!pattern) return {};
  // The attention's own time has what it does not hide.
  if (exchange_axis(trace, op) == Axis::Context && passes_keys_around(trace.step)) return {};
  return Exchange{*pattern, exchange_axis(trace, op), larger(),
                  moves_visits(trace, op) ? Peers::CuttingExpert : Peers::OfAxis};
}

Pattern pattern_of(Task collective) {
  if (collective == Task::AllReduce) return Pattern::AllReduce;
  return collective == Task::AllGather ? Pattern::AllGather : Pattern::ReduceScatter;
}

Bytes total(const Schedule& schedule, std::span<const BufferId> buffers) {
  Bytes sum;
  for (const BufferId buffer : buffers) sum += schedule[buffer].size;
  return sum;
}

// Of Megatron-LM's buffers, which hold experts' apart.
bool is_of_experts(const Trace& trace, const Schedule& schedule, const Run& run) {
  const auto writes = schedule.writes(run);
  const auto& shard = trace.step.shard;
  const bool are_apart = trace.step.mesh.experts > 1 && shard &&
                         shard->kind == Sharding::Kind::Megatron && !writes.empty();
  if (!are_apart) return false;
  const TensorId written = schedule[writes[0]].tensor;
  return written != no_tensor && parameters_of_experts(trace)[index(written)];
}

}  // namespace

std::optional<Exchange> exchange_of(const Trace& trace, const Schedule& schedule, const Run& run) {
  if (!is_collective(run.task)) return exchange_of_op(trace, run);
  return Exchange{
      pattern_of(run.task), Axis::Data,
      std::max(total(schedule, schedule.reads(run)), total(schedule, schedule.writes(run))),
      is_of_experts(trace, schedule, run) ? Peers::SameExperts : Peers::OfAxis};
}

RankGroup group_of(const StepOptions& step, const Exchange& exchange,
                   const Interconnect& interconnect) {
  if (exchange.pattern == Pattern::Send)
    return neighbours_on(step.mesh, exchange.axis, interconnect);
  const std::int64_t apart = step.mesh.ranks_of_expert();  // those that cut an expert lie inside
  switch (exchange.peers) {
    case Peers::SharingExperts:
      return group_of(step.mesh.experts, apart, interconnect);
    case Peers::SameExperts:
      return group_of(expert_replicas_of(step.mesh), apart * step.mesh.experts, interconnect);
    case Peers::CuttingExpert:
      return group_of(apart, 1, interconnect);
    case Peers::OfAxis:
      break;
  }
  if (exchange.axis != Axis::Data) return group_of(step.mesh, exchange.axis, interconnect);
  const std::int64_t shared = ranks_that_share(step), ranks = replicas_of(step.mesh);
  const std::int64_t stride = step.mesh.stride(Axis::Context);  // those of a replica lie inside
  if (shared == ranks) return group_of(ranks, stride, interconnect);
  if (exchange.pattern != Pattern::AllReduce) return group_of(shared, stride, interconnect);
  return group_of(ranks / shared, stride * shared, interconnect);
}

}  // namespace tidemark
