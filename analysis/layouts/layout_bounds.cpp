// Bytes and times of one step, added up by the part of the model that they belong to, and put
// together again by stage.
#include "analysis/layouts/layout_bounds.h"

#include <algorithm>

#include "base/error.h"
#include "simulator/graph/differentiate.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/parallel/fused_gradients.h"
#include "simulator/parallel/pipeline_actions.h"
#include "simulator/parallel/pipeline_order.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/parallel/tensor_cuts.h"
#include "simulator/parallel/wrapped_groups.h"
#include "simulator/place/place.h"
#include "simulator/simulate.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

using Part = LayoutParts::Part;

// By op: 0 before the blocks that stages share, then by block with what follows it, then behind.
std::vector<std::size_t> part_of_ops(const Trace& trace) {
  std::vector<std::size_t> part(trace.ops.size());
  const std::size_t blocks = shared_blocks(trace);
  std::size_t now = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    while (now < blocks && index(trace.blocks[now].begin) <= i) ++now;
    const bool is_behind = blocks > 0 && i >= index(trace.blocks[blocks - 1].end);
    part[i] = is_behind ? blocks + 1 : now;
  }
  return part;
}

void add(const BesideTimes& times, BesideTimes& sum) {
  sum.add += times.add;
  sum.add_main += times.add_main;
  sum.add_main_alone += times.add_main_alone;
  sum.copy += times.copy;
  sum.copy_of_block += times.copy_of_block;
}

// Of one gradient. Sums are read and written; Megatron-LM's cost as much as in fp32, whatever they
// are in.
BesideTimes beside_times(const KernelCosts& kernels, Bytes size, std::int64_t elements) {
  constexpr double fp32 = 4;
  const auto bytes = static_cast<double>(size.count), count = static_cast<double>(elements);
  const auto time = [&](double moved) { return kernels.elementwise(moved, count, 1).time; };
  const auto copy = static_cast<std::int64_t>(2 * bytes / kernels.bytes_per_ns());
  const Nanoseconds add_main = time(bytes + 2 * fp32 * count);
  return {.add = time(3 * bytes),
          .add_main = add_main,
          .add_main_alone = add_main,
          .copy = Nanoseconds{copy}};
}

// By tensor: parameters whose gradients products can add by themselves.
std::vector<bool> weights_of_products(const Trace& trace) {
  std::vector<bool> are(trace.tensors.size());
  for (const Op& op : trace.ops)
    if (const TensorId weight = weight_of_product(trace, op); weight != no_tensor)
      are[index(weight)] = true;
  return are;
}

// By storage: parameters that fully_shard gathers with their block.
std::vector<bool> parameters_of_blocks(const Trace& trace,
                                       const std::vector<WrappedGroup>& groups) {
  std::vector<bool> are(trace.tensors.size());
  for (std::size_t g = 1; g < groups.size(); ++g)
    for (const TensorId parameter : groups[g].parameters) are[index(parameter)] = true;
  return are;
}

// One step, placed and timed, and what its parts need of it.
class PartSums {
 public:
  PartSums(const PlannedStep& planned, const Device& device)
      : trace_(*planned.trace),
        derived_(derived_of(planned)),
        schedule_(place(differentiate(trace_, planned.plan, *derived_),
                        placement_of(trace_, planned.plan))),
        part_(part_of_ops(trace_)),
        first_reader_(trace_.tensors.size(), no_op),
        sums_(shared_blocks(trace_) + 2) {
    for (std::size_t i = 0; i < trace_.ops.size(); ++i)
      for (const TensorId input : trace_.inputs(trace_.ops[i]))
        if (OpId& reader = first_reader_[index(trace_[input].storage)]; reader == no_op)
          reader = static_cast<OpId>(i);
    add_persistent();
    add_gradients(device);
    add_saved();
    add_times(CostModel(trace_, derived_->needs, device));
  }

  std::vector<Part> sums() && { return std::move(sums_); }
  std::vector<DeviceUse> runs() const { return taken_together(runs_); }

 private:
  Part* first_part(TensorId tensor) {
    if (tensor == no_tensor) return nullptr;
    const OpId op = first_reader_[index(trace_[tensor].storage)];
    return op == no_op ? nullptr : &sums_[part_[index(op)]];
  }

  void add_persistent() {
    for (const Buffer& buffer : schedule_.buffers) {
      Part* const part = buffer.persistent ? first_part(buffer.tensor) : nullptr;
      if (!part) continue;
      if (buffer.category == Category::Parameter) part->parameters += buffer.size;
      if (buffer.category == Category::OptimizerState) part->states += buffer.size;
    }
  }

  void add_gradients(const Device& device) {
    const KernelCosts kernels(device, precision_of(trace_.step));
    const std::vector<WrappedGroup> groups = wrapped_groups(trace_);
    const std::vector<bool> is_of_block = parameters_of_blocks(trace_, groups);
    const std::vector<bool> is_of_product = weights_of_products(trace_);
    std::vector<bool> is_counted(trace_.tensors.size());
    for (const Buffer& buffer : schedule_.buffers) {
      if (buffer.role != Role::Gradient || buffer.tensor == no_tensor) continue;
      const Tensor& tensor = trace_[buffer.tensor];
      Part* const part = first_part(buffer.tensor);
      if (!part || tensor.category != Category::Parameter || is_counted[index(buffer.tensor)])
        continue;
      is_counted[index(buffer.tensor)] = true;
      part->gradients += buffer.size;
      part->trained += numel(tensor.shape);
      if (!device.curves.empty()) continue;  // which may be anything
      BesideTimes beside = beside_times(kernels, buffer.size, numel(tensor.shape));
      if (is_of_block[index(tensor.storage)]) beside.copy_of_block = beside.copy;
      if (is_of_product[index(buffer.tensor)]) beside.add_main_alone = {};
      add(beside, part->beside);
    }
    add_wrapped(groups, is_counted);
  }

  // Shards of what has master weights are in fp32, and so are their gradients'.
  void add_wrapped(const std::vector<WrappedGroup>& groups, const std::vector<bool>& has_gradient) {
    constexpr std::int64_t fp32 = 4;
    for (std::size_t g = 1; g < groups.size(); ++g) {
      Part& part = sums_[part_[index(groups[g].first_op)]];
      for (const TensorId parameter : groups[g].parameters) {
        const Tensor& tensor = trace_[parameter];
        part.gathered += size(tensor);
        part.reduced +=
            trace_.step.master_weights ? Bytes{fp32 * numel(tensor.shape)} : size(tensor);
      }
      const bool all_have = std::ranges::all_of(
          groups[g].parameters, [&](TensorId id) { return has_gradient[index(id)]; });
      if (!all_have) part.gathered = part.reduced = {};
    }
  }

  // What is there when the backward begins, with who reads it last: a block's input is its own, as
  // a stage keeps what it receives and not what it sends.
  void add_saved() {
    std::vector<bool> alive(schedule_.buffers.size());
    for (const Step& step : schedule_.steps) {
      if (const auto* made = std::get_if<Allocate>(&step)) alive[index(made->buffer)] = true;
      if (const auto* freed = std::get_if<Free>(&step)) alive[index(freed->buffer)] = false;
      const auto* run = std::get_if<Run>(&step);
      if (run && (run->task == Task::Seed || run->task == Task::Backward)) break;
    }
    for (std::size_t i = 0; i < alive.size(); ++i) {
      const Buffer& buffer = schedule_.buffers[i];
      if (!alive[i] || buffer.persistent || buffer.tensor == no_tensor) continue;
      const OpId op = derived_->needs.last_read[index(trace_[buffer.tensor].storage)];
      if (op != no_op) sums_[part_[index(op)]].saved += buffer.size;
    }
  }

  // Does it copy or add to a parameter's gradient? That is no part of each micro-batch: where the
  // first copies what others share, the next ones add.
  bool sums_up(const Run& run) const {
    return run.task == Task::Accumulate &&
           std::ranges::any_of(schedule_.writes(run), [&](BufferId id) {
             const TensorId tensor = schedule_[id].tensor;
             return tensor != no_tensor && trace_[tensor].category == Category::Parameter;
           });
  }

  // Without what context ranks, which are never alone, do with gradients: that may be hidden.
  void add_times(const CostModel& costs) {
    for (const Step& step : schedule_.steps) {
      const Run* run = std::get_if<Run>(&step);
      if (!run || run->op == no_op || run->task == Task::Pack || is_collective(run->task) ||
          sums_up(*run))
        continue;
      const Cost cost = costs.of(schedule_, *run);
      sums_[part_[index(run->op)]].time += cost.time;
      // Beside others it may end half a nanosecond early.
      runs_.push_back(
          {cost.sm_share, cost.memory_share, static_cast<double>(cost.time.count()) - 0.5});
    }
  }

  const Trace& trace_;
  const std::shared_ptr<const Derived> derived_;
  const Schedule schedule_;
  const std::vector<std::size_t> part_;  ///< by op
  std::vector<OpId> first_reader_;       ///< by storage
  std::vector<Part> sums_;
  std::vector<DeviceUse> runs_;
};

// Of each stage: first and last part of each of its chunks.
struct PartRange {
  std::size_t begin, end;
};

std::vector<PartRange> chunk_parts(const PipelineSchedule& schedule, std::int64_t stages,
                                   std::size_t blocks) {
  const auto chunks = static_cast<std::size_t>(stages * schedule.chunks);
  std::vector<PartRange> ranges;
  std::size_t begin = 0, end = 1;
  for (std::size_t c = 0; c < chunks; ++c) {
    end += schedule.blocks.empty() ? blocks / chunks : static_cast<std::size_t>(schedule.blocks[c]);
    if (c + 1 == chunks) end = blocks + 2;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

void add(const Part& part, Part& sum) {
  sum.parameters += part.parameters;
  sum.states += part.states;
  sum.gradients += part.gradients;
  sum.trained += part.trained;
  sum.saved += part.saved;
  sum.time += part.time;
  add(part.beside, sum.beside);
}

// Chunks whose activations are alive at once, as docs/parallel.md has them.
std::int64_t chunks_in_flight(const PipelineSchedule& schedule, const MeshLayout& layout,
                              std::int64_t stage) {
  const std::int64_t stages = layout.mesh[Axis::Pipeline], all = layout.micro_batches;
  switch (schedule.kind) {
    case PipelineSchedule::Kind::OneForwardOneBackward:
      return std::min(all, stages - stage);
    case PipelineSchedule::Kind::GPipe:
      return all;
    case PipelineSchedule::Kind::Interleaved:
      return std::min(all * schedule.chunks,
                      2 * (stages - stage - 1) + (schedule.chunks - 1) * stages + 1);
    case PipelineSchedule::Kind::ZeroBubbleH1:
      return std::min(all, stages - stage);
    case PipelineSchedule::Kind::ZeroBubbleH2:
      return std::min(all, 2 * (stages - stage) - 1);
    case PipelineSchedule::Kind::ZeroBubbleV:  // of the first chunk, and of the second
      return std::min(all, 2 * stages - stage - 1) + std::min(all, stage + 1);
  }
  return 1;
}

Bytes times(Bytes bytes, std::int64_t count) { return {bytes.count * count}; }

// What stays between steps, what gradients add to it between micro-batches, and what they and
// their buffers add before the update.
struct RestBound {
  Bytes rest, gradients, last;
};

// fp32 gradients of its part, in ZeRO 3 of a billion elements at once, follow those of the
// parameters' type, which lie beside a bucket while the last are reduced. Parameters in fp32 have a
// copy that is updated, but not in ZeRO 3.
RestBound zero_rest(const Sharding& sharing, std::int64_t ranks, const Part& all) {
  const auto part = [ranks](Bytes bytes) { return Bytes{bytes.count / ranks}; };
  constexpr std::int64_t fp32 = 4, at_once = fp32 * 1'000'000'000;
  const bool is_fp32 = all.gradients.count == fp32 * all.trained;
  const Bytes wide = part(Bytes{fp32 * all.trained});
  const Bytes bucket{all.trained > 0 ? sharing.reduce_bucket * (is_fp32 ? fp32 : 2) : 0};
  if (sharing.kind == Sharding::Kind::Zero3)
    return {part(all.parameters + all.states + all.gradients) + bucket,
            {},
            std::min(wide, Bytes{at_once})};
  const Bytes copy = is_fp32 ? wide : Bytes{};
  const bool is_whole = sharing.kind == Sharding::Kind::Zero1;
  const Bytes kept = is_whole ? all.gradients : part(all.gradients);
  const Bytes beside = is_whole && sharing.overlaps ? Bytes{} : kept;
  return {all.parameters + part(all.states) + copy, kept, std::max(wide, beside + bucket)};
}

RestBound rest_bound(const StepOptions& step, const Part& all) {
  const std::int64_t ranks = replicas_of(step.mesh);
  const std::optional<Sharding> shared = sharing_of(step);
  const Bytes whole = all.parameters + all.states;
  const Bytes loose = step.update_in_backward ? Bytes{} : all.gradients;
  if (!shared) return {whole, loose, loose};
  switch (shared->kind) {
    case Sharding::Kind::Ddp: {
      const Bytes beside = shared->bucket_view ? Bytes{} : all.gradients;
      return {whole + all.gradients, beside, beside};
    }
    case Sharding::Kind::Fsdp2:
    case Sharding::Kind::Fsdp1: {
      const std::int64_t cut = shared->shard_ranks > 0 ? shared->shard_ranks : ranks;
      const Bytes gradients{all.gradients.count / cut};
      return {Bytes{whole.count / cut}, gradients, gradients};
    }
    case Sharding::Kind::Zero1:
    case Sharding::Kind::Zero2:
    case Sharding::Kind::Zero3:
      return zero_rest(*shared, ranks, all);
    case Sharding::Kind::Megatron: {
      const std::int64_t cut = shared->cuts_states ? ranks / shared->instances : 1;
      const Bytes main = shared->gradients_are_wide ? Bytes{4 * all.trained} : all.gradients;
      return {all.parameters + Bytes{all.states.count / cut} + main, {}, {}};
    }
  }
  return {};
}

class StageBounds {
 public:
  StageBounds(const LayoutRequest& request, const MeshLayout& layout, const LayoutParts& parts)
      : layout_(layout),
        parts_(parts),
        device_(request.scenario.device),
        step_(step_in(request, layout)) {
    if (layout.mesh[Axis::Pipeline] > 1) schedule_ = *step_.schedule;
    const std::int64_t stages = layout.mesh[Axis::Pipeline];
    const auto ranges = chunk_parts(schedule_, stages, parts.parts.size() - 2);
    stages_.resize(static_cast<std::size_t>(stages));
    for (std::size_t c = 0; c < ranges.size(); ++c) {
      Stage& stage = stages_[static_cast<std::size_t>(
          place_of_chunk(schedule_, stages, static_cast<std::int64_t>(c)).stage)];
      Part chunk;
      for (std::size_t p = ranges[c].begin; p < ranges[c].end; ++p) add(parts.parts[p], chunk);
      stage.least_saved = stage.is_begun ? std::min(stage.least_saved, chunk.saved) : chunk.saved;
      if (!stage.is_begun) stage.first = chunk.time;
      stage.is_begun = true;
      add(chunk, stage.all);
    }
  }

  Bytes allocated() const {
    Bytes most;
    for (std::size_t s = 0; s < stages_.size(); ++s) most = std::max(most, allocated(s));
    return most;
  }

  // A stage begins when the first micro-batch has come through those before it, and they end when
  // the last has gone back; with zero-bubble schedules the next step's has begun by then. Averages
  // over micro-batches are rounded down.
  Nanoseconds duration() const {
    Nanoseconds before{}, most{};
    for (const Stage& stage : stages_) {
      const Nanoseconds batches = stage.all.time * layout_.micro_batches;
      most = std::max(most, batches + beside(stage.all.beside) + before);
      if (!schedule_.splits_backward()) before += stage.first;
    }
    if (stages_.size() == 1) return std::max(most + all_reduces(), beside_exchanges());
    const std::int64_t passes = schedule_.splits_backward() ? 3 : 2;
    const Nanoseconds rounded{
        passes * (layout_.micro_batches * schedule_.chunks + layout_.mesh[Axis::Pipeline])};
    return std::max(Nanoseconds{}, most - rounded);
  }

 private:
  // What is done beside a micro-batch on the stream of its forward and backward.
  Nanoseconds beside(const BesideTimes& times) const {
    const std::int64_t batches = layout_.micro_batches;
    const Nanoseconds added = times.add * (batches - 1);
    const std::optional<Sharding> shared = sharing_of(step_);
    if (!shared) return added;
    switch (shared->kind) {
      case Sharding::Kind::Ddp:
      case Sharding::Kind::Zero1:
        return added;
      case Sharding::Kind::Megatron:
        return (fuses_accumulation(step_) ? times.add_main_alone : times.add_main) * batches;
      case Sharding::Kind::Zero2:  // to a bucket
      case Sharding::Kind::Fsdp1:
        return times.copy * batches;
      case Sharding::Kind::Fsdp2:  // and from what is gathered, in the backward again
        return (2 * times.copy + (shared->reshards ? times.copy_of_block : Nanoseconds{})) *
               batches;
      case Sharding::Kind::Zero3:  // on other streams, or of modules that may be whole already
        return {};
    }
    return {};
  }

  // Null where no network does: the simulation will say so.
  const Interconnect* joining_replicas() const {
    const Interconnect* const joined = interconnect_of(device_);
    if (!joined || joined->network_cards > 0) return joined;
    const std::int64_t gpus = replicas_of(step_.mesh) * step_.mesh[Axis::Tensor];
    return static_cast<double>(gpus) > joined->gpus_per_node ? nullptr : joined;
  }

  // With fully_shard's exchanges of blocks: in the forward, with `reshards` in the backward again,
  // and of gradients; each gathers to a buffer that is copied from, and scatters one that is copied
  // to, but FSDP1 gathers in place.
  Nanoseconds beside_exchanges() const {
    const Interconnect* const joined = joining_replicas();
    const std::optional<Sharding> shared = sharing_of(step_);
    if (!shared || !is_fsdp(shared->kind) || !joined) return {};
    const KernelCosts kernels(device_, precision_of(step_));
    const int gathers = shared->reshards ? 2 : 1;
    const int copies = shared->kind == Sharding::Kind::Fsdp1 ? 1 : 1 + gathers;
    const auto batches = static_cast<double>(layout_.micro_batches);
    double copied = static_cast<double>(beside(stages_[0].all.beside).count()) / batches;
    DeviceUse use{.sms = joined->channels / std::max(1, device_.sm_count), .memory = 1};
    std::vector<DeviceUse> runs = parts_.runs;
    const auto exchange = [&](Pattern pattern, Bytes size, int times) {
      const RankGroup group = group_of(step_, Exchange{pattern, Axis::Data, size}, *joined);
      const auto made = collective_of(*joined, group, pattern, static_cast<double>(size.count));
      use.memory = std::min(use.memory, made.moved / made.ns / kernels.bytes_per_ns());
      use.ns += times * made.ns * made.link_share;
    };
    for (const Part& part : parts_.parts) {
      if (part.gathered == Bytes{}) continue;
      exchange(Pattern::AllGather, part.gathered, gathers);
      exchange(Pattern::ReduceScatter, part.reduced, 1);
      if (copied == 0) continue;
      const double moved = 2 * static_cast<double>(part.gathered.count);
      const Cost copy = kernels.elementwise(moved, moved / 8, 1);  // as CostModel::packing()
      runs.push_back(
          {copy.sm_share, copy.memory_share, copies * static_cast<double>(copy.time.count())});
      copied -= copies * moved / kernels.bytes_per_ns();
    }
    runs.push_back({.ns = std::max(0.0, copied)});
    const double rounded = 3 * static_cast<double>(parts_.parts.size());  // of those and copies
    const double each = std::max(0.0, least_beside(runs, use) - rounded);
    return Nanoseconds{static_cast<std::int64_t>(each * batches)};
  }

  // DeepSpeed's ZeRO 2 adds up all gradients of each micro-batch on the stream of its backward,
  // bucket by bucket: none is faster than the link, or than a whole node has been measured.
  Nanoseconds all_reduces() const {
    const Interconnect* const joined = joining_replicas();
    const std::optional<Sharding> shared = sharing_of(step_);
    if (!shared || shared->kind != Sharding::Kind::Zero2 || shared->overlaps || !joined) return {};
    const Bytes all = stages_[0].all.gradients;
    const RankGroup group = group_of(step_, Exchange{Pattern::AllReduce, Axis::Data, all}, *joined);
    const auto bytes = static_cast<double>(all.count);
    const auto gather = collective_of(*joined, group, Pattern::AllGather, bytes);
    double ns = 2 * gather.ns * gather.link_share;
    for (const BusPoint& point : joined->all_reduce) {
      const auto ranks = static_cast<double>(group.ranks);
      ns = std::min(ns, 2e9 * bytes * (ranks - 1) / ranks / point.bus_bytes_per_second);
    }
    return Nanoseconds{static_cast<std::int64_t>(ns)} * layout_.micro_batches;
  }

  struct Stage {
    Part all;             ///< of all its chunks
    Bytes least_saved;    ///< of one of them
    Nanoseconds first{};  ///< of the first of them
    bool is_begun = false;
  };

  Bytes allocated(std::size_t s) const {
    const RestBound bound = rest_bound(step_, stages_[s].all);
    const std::int64_t flying = chunks_in_flight(schedule_, layout_, static_cast<std::int64_t>(s));
    const bool others_follow = layout_.micro_batches * schedule_.chunks > flying;
    Bytes full = bound.rest + times(stages_[s].least_saved, flying);
    if (others_follow && schedule_.chunks == 1 && !schedule_.splits_backward())
      full += bound.gradients;
    return std::max(full, bound.rest + bound.last);
  }

  const MeshLayout layout_;
  const LayoutParts& parts_;
  const Device& device_;
  const StepOptions step_;
  PipelineSchedule schedule_;
  std::vector<Stage> stages_;
};

}  // namespace

LayoutParts parts_of(const LayoutRequest& request, const MeshLayout& layout) {
  MeshLayout alone = layout;
  alone.mesh[Axis::Pipeline] = alone.mesh[Axis::Data] = 1;
  alone.micro_batches = 1;
  StepOptions step = step_in(request, alone);
  step.shard = {};
  LayoutParts found;
  try {
    const auto trace =
        std::make_shared<const Trace>(build_rank_trace(request.scenario.model, step));
    const PlannedStep planned = plan_step(trace, request.scenario.strategies[layout.strategy]);
    found.refusal = planned.refusal;
    if (!found.refusal.empty()) return found;
    StepOptions in_flight = step;
    in_flight.mesh[Axis::Pipeline] = in_flight.accumulate.count = 2;
    found.pipeline_refusal = pipeline_defect(in_flight, planned.plan);
    found.is_on_one_lane = !planned.plan.overlap;
    PartSums sums(planned, request.scenario.device);
    found.runs = sums.runs();
    found.parts = std::move(sums).sums();
  } catch (const IndivisibleError& error) {
    found.tensor_refusal = error.what();
    found.is_indivisible = true;
  } catch (const InputError& error) {
    found.tensor_refusal = error.what();
  }
  return found;
}

LayoutBounds bounds_of(const LayoutRequest& request, const MeshLayout& layout,
                       const LayoutParts& parts) {
  const StageBounds bounds(request, layout, parts);
  return {bounds.allocated(), parts.is_on_one_lane ? bounds.duration() : Nanoseconds{}};
}

}  // namespace tidemark
