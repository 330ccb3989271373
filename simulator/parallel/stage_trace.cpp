// Example, the second of three stages:
//   link ─receive─► x ─blocks─► y ─send─► a number of no use, which stands for the loss
// The gradient of send is received, that of receive is sent: both are ops like any other.
// An interleaved stage has several such chunks, one behind the other:
//   … ─send─► number ─receive─► x' ─blocks─► …
// The last stage of zb-v has neighbouring chunks, and sends nothing in between.
#include "simulator/parallel/stage_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/parallel/pipeline_actions.h"
#include "simulator/strategies/trace_edit.h"

namespace tidemark {
namespace {

void refuse_uneven(const Trace& trace, std::int64_t blocks, std::int64_t chunks) {
  const std::int64_t stages = trace.step.mesh[Axis::Pipeline];
  Mesh nearest = trace.step.mesh;
  nearest[Axis::Pipeline] = nearest_divisor(blocks, stages);
  const std::vector<std::int64_t> uneven = uneven_stages(blocks, stages);
  throw InputError(
      chunks == stages
          ? fmt::format("--mesh: pp: {} blocks cannot be dealt out evenly over {} stages (nearest: "
                        "--mesh {}; or --schedule 1f1b:blocks={})",
                        blocks, stages, to_text(nearest),
                        uneven.empty() ? "… with one number per stage"
                                       : fmt::format("{}", fmt::join(uneven, "-")))
          : fmt::format("--schedule: {} blocks cannot be dealt out evenly over {} chunks of {} "
                        "stages (say how with blocks=…, one number per chunk)",
                        blocks, chunks, stages));
}

// As Megatron-LM refuses them (forward_backward_pipelining_with_interleaving() of
// core/pipeline_parallel/schedules.py).
void check_groups(const StepOptions& step) {
  const auto schedule = step.schedule.value_or(PipelineSchedule());
  const std::int64_t stages = step.mesh[Axis::Pipeline], all = step.accumulate.count;
  if (fills_groups(schedule, stages, all)) return;
  const std::int64_t group = schedule.group_of(stages);
  if (group < stages)
    throw InputError(fmt::format(
        "--schedule: group={}: {} stages take groups of {} micro-batches or more (leave it out)",
        group, stages, stages));
  if (group > all)
    throw InputError(
        all < stages
            ? fmt::format("--schedule: {} chunks of {} stages take turns with {} micro-batches or "
                          "more, and here are {} (take --accumulate {}, or 1f1b)",
                          schedule.chunks, stages, stages, all, stages)
            : fmt::format("--schedule: group={} is more than the {} micro-batches that there are "
                          "(take group={})",
                          group, all, all));
  throw InputError(fmt::format(
      "--schedule: {} micro-batches in groups of {} leave {} for the last, where {} stages need as "
      "many (take --accumulate {}, or interleaved:v={},group={})",
      all, group, all % group, stages, all / group * group, schedule.chunks, all));
}

// By chunk in model order; and one behind the last.
std::vector<std::size_t> first_blocks(const Trace& trace) {
  const auto schedule = trace.step.schedule.value_or(PipelineSchedule());
  const auto blocks = static_cast<std::int64_t>(shared_blocks(trace));
  const std::int64_t chunks = trace.step.mesh[Axis::Pipeline] * schedule.chunks;
  if (blocks == 0) throw InputError("--mesh: pp: the step names no blocks to deal out");
  check_groups(trace.step);
  std::vector<std::int64_t> counts = schedule.blocks;
  if (counts.empty()) {
    if (blocks % chunks != 0) refuse_uneven(trace, blocks, chunks);
    counts.assign(static_cast<std::size_t>(chunks), blocks / chunks);
  }
  std::vector<std::size_t> first = {0};
  for (const std::int64_t count : counts)
    first.push_back(first.back() + static_cast<std::size_t>(count));
  if (static_cast<std::int64_t>(counts.size()) == chunks && first.back() == shared_blocks(trace))
    return first;
  throw InputError(
      fmt::format("--schedule: blocks={} deals {} blocks out to {} chunks; the step has "
                  "{} blocks and {} chunks",
                  fmt::join(counts, "-"), first.back(), counts.size(), blocks, chunks));
}

class StageTrace {
 public:
  StageTrace(const Trace& from, std::size_t stage)
      : from_(from),
        first_block_(first_blocks(from)),
        stages_(static_cast<std::size_t>(from.step.mesh[Axis::Pipeline])),
        stage_(stage),
        own_(own_chunks()),
        producer_(from.tensors.size(), no_op),
        wanted_(from.ops.size()),
        unread_(unread_in(from)),
        edit_(from, Unread::Leaves) {
    for (std::size_t i = 0; i < from.ops.size(); ++i)
      for (const TensorId output : from.outputs(from.ops[i]))
        if (producer_[index(from[output].storage)] == no_op)
          producer_[index(from[output].storage)] = static_cast<OpId>(i);
  }

  Trace run() && {
    for (std::size_t chunk = 0; chunk < chunks(); ++chunk) want(chunk);
    for (const std::size_t chunk : own_) write(chunk);
    for (std::size_t b = 0; b < from_.blocks.size(); ++b)
      if (!is_own(b)) edit_.feed_block(b, TensorId{0});
    return with_own_blocks(edit_.finish());
  }

 private:
  std::size_t chunks() const { return first_block_.size() - 1; }
  bool is_last(std::size_t chunk) const { return chunk + 1 == chunks(); }
  bool is_own_chunk(std::size_t chunk) const {
    return std::ranges::find(own_, chunk) != own_.end();
  }

  std::vector<std::size_t> own_chunks() const {
    const auto schedule = from_.step.schedule.value_or(PipelineSchedule());
    const auto stages = static_cast<std::int64_t>(stages_);
    std::vector<std::size_t> own;
    for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
      own.push_back(static_cast<std::size_t>(
          chunk_in_model(schedule, stages, {static_cast<std::int64_t>(stage_), chunk})));
    return own;
  }

  OpId end_of_blocks() const { return from_.blocks[first_block_.back() - 1].end; }

  // Ops of a chunk begin with its first block; those behind all blocks are the last one's.
  std::size_t begin_of(std::size_t chunk) const {
    if (chunk == 0) return 0;
    if (chunk == chunks()) return from_.ops.size();
    const std::size_t block = first_block_[chunk];
    return index(block < first_block_.back() ? from_.blocks[block].begin : end_of_blocks());
  }

  // What the chunk receives.
  TensorId input_of(std::size_t chunk) const {
    const std::size_t block = first_block_[chunk];
    if (block < first_block_.back()) return from_.blocks[block].input;
    const Op& last = from_.ops[index(end_of_blocks()) - 1];
    return from_[from_.outputs(last)[0]].storage;
  }

  // Of this stage's chunks, which the block is of, or -1.
  std::int32_t own_chunk(std::size_t block) const {
    for (const std::size_t chunk : own_)
      if (block >= first_block_[chunk] && (block < first_block_[chunk + 1] || is_last(chunk)))
        return static_cast<std::int32_t>(chunk / stages_);
    return -1;
  }
  bool is_own(std::size_t block) const { return own_chunk(block) >= 0; }

  // Others' as well, which may read what nobody sends them: then there is no such pipeline.
  void want(std::size_t chunk) {
    const std::size_t begin = begin_of(chunk), end = begin_of(chunk + 1);
    std::vector<bool> needed(from_.ops.size());
    for (std::size_t i = begin; i < end; ++i) needed[i] = true;
    for (std::size_t i = end; i-- > 0;)
      if (needed[i]) want_inputs(i, chunk, needed);
    if (!is_own_chunk(chunk)) return;
    for (std::size_t i = 0; i < end; ++i) wanted_[i] = wanted_[i] || needed[i];
  }

  // What stands before the chunk: its input is received, and what is made of the step's own inputs
  // (masks, positions) each stage makes for itself.
  void want_inputs(std::size_t i, std::size_t chunk, std::vector<bool>& needed) const {
    const std::size_t begin = begin_of(chunk);
    for (const TensorId input : from_.inputs(from_.ops[i])) {
      const TensorId storage = from_[input].storage;
      const OpId made_by = producer_[index(storage)];
      if (made_by == no_op || index(made_by) >= begin) {
        if (made_by == no_op && i < begin && from_[storage].category == Category::Parameter)
          refuse(from_.ops[i]);
        continue;
      }
      if (storage == from_[input_of(chunk)].storage) continue;
      needed[index(made_by)] = true;
    }
  }

  // Stages send on what their last block made, and nothing else.
  [[noreturn]] void refuse(const Op& op) const {
    const bool has_decoder = std::ranges::any_of(
        from_.blocks, [](const Block& block) { return block.name.starts_with("decoder."); });
    if (has_decoder)
      throw InputError(
          "--mesh: pp: all blocks of a decoder read what its encoder makes, which stages do not "
          "send on (take pp=1)");
    throw InputError(fmt::format(
        "--mesh: pp: blocks read {}, which another stage makes and does not send on (take pp=1)",
        from_.family == "deberta" ? "relative positions"
                                  : quoted(from_[from_.outputs(op)[0]].name)));
  }

  void write(std::size_t chunk) {
    if (chunk > 0 && !is_own_chunk(chunk - 1)) receive(chunk);
    for (const std::size_t end = begin_of(chunk + 1); next_ < end; ++next_) {
      const bool is_wanted = wanted_[next_];
      for (; next_unread_ < unread_.size() && is_before(unread_[next_unread_], next_);
           ++next_unread_)
        if (is_wanted) edit_.map(unread_[next_unread_]);
      if (is_wanted) edit_.copy(static_cast<OpId>(next_));
    }
    if (!is_last(chunk) && !is_own_chunk(chunk + 1)) send(chunk);
  }

  // What no op reads is of the module whose op comes next.
  bool is_before(TensorId unread, std::size_t op) const {
    return unread < from_.outputs(from_.ops[op])[0];
  }

  std::string name_in(std::size_t chunk, std::string_view what) const {
    return chunk < stages_ ? std::string(what) : fmt::format("{}.{}", what, chunk / stages_);
  }

  // What comes back through stages without blocks is there a second time.
  bool is_own_result(TensorId x) const {
    const OpId made_by = producer_[index(from_[x].storage)];
    return made_by != no_op && std::ranges::any_of(own_, [&](std::size_t chunk) {
             return index(made_by) >= begin_of(chunk) && index(made_by) < begin_of(chunk + 1);
           });
  }

  void receive(std::size_t chunk) {
    const TensorId x = input_of(chunk);
    if (from_[x].storage != x)
      throw InputError(fmt::format("--mesh: pp: {} is a part of other memory, and is not sent",
                                   quoted(from_[x].name)));
    const TensorId link = sent_ != no_tensor ? sent_
                                             : edit_.external({.name = "receive.link",
                                                               .shape = {},
                                                               .dtype = DType::Float32,
                                                               .category = Category::Input,
                                                               .trainable = true});
    Tensor received = from_[x];
    received.storage = no_tensor;
    received.held_until = no_op;
    if (is_own_result(x)) received.name = edit_.name(name_in(chunk, received.name));
    edit_.redirect(
        x, edit_.emit(OpKind::Receive, edit_.name(name_in(chunk, "receive")), {link}, received));
  }

  // What comes back from other stages depends on what was sent: the link of the chunk behind.
  void send(std::size_t chunk) {
    const Tensor number{
        .name = edit_.name(name_in(chunk, "send")), .shape = {}, .dtype = DType::Float32};
    sent_ = edit_.emit(OpKind::Send, number.name, {edit_.map(input_of(chunk + 1))}, number);
    if (chunk == own_.back()) edit_.redirect(from_.loss, sent_);
  }

  // What another stage has made is no part of a stack: each chunk has stacks of its own.
  Trace with_own_blocks(Trace trace) const {
    std::int32_t stacks = 0;
    for (const Block& block : trace.blocks) stacks = std::max(stacks, block.stack + 1);
    std::vector<std::int32_t> number(trace.blocks.size(), -1);
    std::vector<Block> own;
    for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
      if (!is_own(b)) continue;
      number[b] = static_cast<std::int32_t>(own.size());
      own.push_back(trace.blocks[b]);
      if (own.back().stack >= 0) own.back().stack += own_chunk(b) * stacks;
    }
    for (Op& op : trace.ops)
      if (op.block >= 0) op.block = number[static_cast<std::size_t>(op.block)];
    trace.blocks = std::move(own);
    return trace;
  }

  const Trace& from_;
  const std::vector<std::size_t> first_block_;  ///< by chunk of all stages, and one behind
  const std::size_t stages_, stage_;
  const std::vector<std::size_t> own_;  ///< chunks, of the model's
  std::vector<OpId> producer_;          ///< by storage: who makes it first
  std::vector<bool> wanted_;            ///< by op
  const std::vector<TensorId> unread_;  ///< in order
  std::size_t next_unread_ = 0;
  TraceEdit edit_;
  std::size_t next_ = 0;       ///< op to be copied
  TensorId sent_ = no_tensor;  ///< of the chunk before
};

// The op that begins the stage's second chunk, if that goes on with what the first has made there.
std::optional<OpId> begin_of_joined_chunk(const Trace& trace) {
  const auto schedule = trace.step.schedule.value_or(PipelineSchedule());
  const std::int64_t stages = trace.step.mesh[Axis::Pipeline];
  const std::int64_t stage = trace.step.rank.value_or(RankClass()).stage;
  if (stages == 1 || schedule.kind != PipelineSchedule::Kind::ZeroBubbleV || stage + 1 < stages)
    return {};
  const auto chunk = static_cast<std::size_t>(chunk_in_model(schedule, stages, {stage, 0}));
  const std::size_t blocks = shared_blocks(trace);
  const std::size_t first = chunk < schedule.blocks.size()
                                ? static_cast<std::size_t>(schedule.blocks[chunk])
                                : blocks / 2;
  if (first < blocks) return trace.blocks[first].begin;
  return blocks == 0 ? OpId{1} : trace.blocks[blocks - 1].end;
}

}  // namespace

void require_stage(const StepOptions& step) {
  const std::int64_t stages = step.mesh[Axis::Pipeline];
  if (step.rank.value_or(RankClass()).stage < stages) return;
  throw InputError(
      stages == 1
          ? fmt::format("--rank: {} is of a pipeline, and this step has one stage (leave it out, "
                        "or give --mesh pp=2)",
                        to_text(*step.rank))
          : fmt::format("--rank: {} is not among the {} stages (the last is pp{})",
                        to_text(*step.rank), stages, stages - 1));
}

Trace cut_for_stage(Trace trace) {
  require_stage(trace.step);
  if (trace.step.mesh[Axis::Pipeline] == 1) return trace;
  const std::int64_t stage = trace.step.rank.value_or(RankClass()).stage;
  trace.step.rank = RankClass{stage};
  return StageTrace(trace, static_cast<std::size_t>(stage)).run();
}

// Each chunk but the stage's first begins with what it receives, or is joined to the one before.
std::vector<std::int64_t> chunk_of_ops(const Trace& trace) {
  std::vector<std::int64_t> chunk_of(trace.ops.size());
  if (trace.step.schedule.value_or(PipelineSchedule()).chunks == 1) return chunk_of;
  for (std::size_t i = 1; i < trace.ops.size(); ++i)
    chunk_of[i] = chunk_of[i - 1] + (trace.ops[i].kind == OpKind::Receive ? 1 : 0);
  if (const std::optional<OpId> joined = begin_of_joined_chunk(trace))
    for (std::size_t i = index(*joined); i < trace.ops.size(); ++i) chunk_of[i] = 1;
  return chunk_of;
}

}  // namespace tidemark
