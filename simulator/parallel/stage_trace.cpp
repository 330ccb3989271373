// Example, the second of three stages:
//   link ─receive─► x ─blocks─► y ─send─► a number of no use, which stands for the loss
// The gradient of send is received, that of receive is sent: both are ops like any other.
#include "simulator/parallel/stage_trace.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/strategies/trace_edit.h"

namespace tidemark {
namespace {

class StageTrace {
 public:
  StageTrace(const Trace& from, std::size_t stage)
      : from_(from),
        stages_(static_cast<std::size_t>(from.step.mesh[Axis::Pipeline])),
        stage_(stage),
        blocks_(from.blocks.size() / stages_),
        producer_(from.tensors.size(), no_op),
        wanted_(from.ops.size()),
        edit_(from) {
    for (std::size_t i = 0; i < from.ops.size(); ++i)
      for (const TensorId output : from.outputs(from.ops[i]))
        if (producer_[index(from[output].storage)] == no_op)
          producer_[index(from[output].storage)] = static_cast<OpId>(i);
  }

  Trace run() && {
    const std::size_t begin = is_first() ? 0 : index(first_block(stage_).begin);
    const std::size_t end = is_last() ? from_.ops.size() : index(first_block(stage_ + 1).begin);
    for (std::size_t i = begin; i < end; ++i) wanted_[i] = true;
    for (std::size_t i = end; i-- > 0;)
      if (wanted_[i]) want_inputs(i, begin);
    if (!is_first()) receive(first_block(stage_).input);
    for (std::size_t i = 0; i < end; ++i)
      if (wanted_[i]) edit_.copy(static_cast<OpId>(i));
    if (!is_last()) send(first_block(stage_ + 1).input);
    for (std::size_t b = 0; b < from_.blocks.size(); ++b)
      if (b / blocks_ != stage_) edit_.feed_block(b, TensorId{0});
    return with_own_blocks(edit_.finish());
  }

 private:
  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == stages_; }
  const Block& first_block(std::size_t stage) const { return from_.blocks[stage * blocks_]; }

  // What stands before the stage: its input is received, and what is made of the step's own inputs
  // (masks, positions) each stage makes for itself.
  void want_inputs(std::size_t i, std::size_t begin) {
    for (const TensorId input : from_.inputs(from_.ops[i])) {
      const TensorId storage = from_[input].storage;
      const OpId made_by = producer_[index(storage)];
      if (made_by == no_op || index(made_by) >= begin) {
        if (made_by == no_op && i < begin && from_[storage].category == Category::Parameter)
          refuse(from_.ops[i], input);
        continue;
      }
      if (storage == from_[first_block(stage_).input].storage) continue;
      wanted_[index(made_by)] = true;
    }
  }

  [[noreturn]] void refuse(const Op& op, TensorId input) const {
    throw InputError(fmt::format(
        "--mesh: pp: stage {} would need {}, which {} makes of {} on another", stage_,
        quoted(from_[from_.outputs(op)[0]].name), quoted(op.name), quoted(from_[input].name)));
  }

  void receive(TensorId x) {
    if (from_[x].storage != x)
      throw InputError(fmt::format("--mesh: pp: {} is a part of other memory, and is not sent",
                                   quoted(from_[x].name)));
    const TensorId link = edit_.external({.name = "receive.link",
                                          .shape = {},
                                          .dtype = DType::Float32,
                                          .category = Category::Input,
                                          .trainable = true});
    Tensor received = from_[x];
    received.storage = no_tensor;
    received.held_until = no_op;
    edit_.redirect(x, edit_.emit(OpKind::Receive, "receive", {link}, received));
  }

  void send(TensorId y) {
    const Tensor sent{.name = "send", .shape = {}, .dtype = DType::Float32};
    edit_.redirect(from_.loss, edit_.emit(OpKind::Send, "send", {edit_.map(y)}, sent));
  }

  Trace with_own_blocks(Trace trace) const {
    const auto first = static_cast<std::int32_t>(stage_ * blocks_);
    for (Op& op : trace.ops)
      if (op.block >= 0) op.block -= first;
    trace.blocks.erase(trace.blocks.begin() + first + static_cast<std::ptrdiff_t>(blocks_),
                       trace.blocks.end());
    trace.blocks.erase(trace.blocks.begin(), trace.blocks.begin() + first);
    return trace;
  }

  const Trace& from_;
  const std::size_t stages_, stage_, blocks_;
  std::vector<OpId> producer_;  ///< by storage: who makes it first
  std::vector<bool> wanted_;    ///< by op
  TraceEdit edit_;
};

}  // namespace

Trace cut_for_stage(Trace trace) {
  const std::int64_t stages = trace.step.mesh[Axis::Pipeline];
  if (stages == 1) return trace;
  const auto blocks = static_cast<std::int64_t>(trace.blocks.size());
  if (blocks == 0) throw InputError("--mesh: pp: the step names no blocks to deal out");
  if (blocks % stages != 0) {
    Mesh nearest = trace.step.mesh;
    nearest[Axis::Pipeline] = nearest_divisor(blocks, stages);
    throw InputError(
        fmt::format("--mesh: pp: {} blocks cannot be dealt out evenly over {} stages (nearest: "
                    "--mesh {})",
                    blocks, stages, to_text(nearest)));
  }
  const std::int64_t stage = trace.step.rank.value_or(RankClass()).stage;
  if (stage >= stages)
    throw InputError(fmt::format("--rank: {} is not among the {} stages (the last is pp{})",
                                 to_text(*trace.step.rank), stages, stages - 1));
  trace.step.rank = RankClass{stage};
  return StageTrace(trace, static_cast<std::size_t>(stage)).run();
}

}  // namespace tidemark
