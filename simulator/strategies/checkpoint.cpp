// Activation checkpointing (arXiv 1604.06174): between the inputs of segments nothing is kept; a
// segment runs again before its gradients, but for what a policy keeps of it. Selective
// recomputation (arXiv 2205.05198) does so for the attention core only.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/needs.h"
#include "simulator/parallel/stage_trace.h"
#include "simulator/strategies/consumers.h"
#include "simulator/strategies/kept_calls.h"
#include "simulator/strategies/regions.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

// What a node holds without a hook: the number that something is scaled by.
bool is_number(const Trace& trace, std::size_t op, TensorId output) {
  return trace.ops[op].kind == OpKind::Scale && output != trace.outputs(trace.ops[op])[0];
}

// Saved tensors that are written and read only inside of [begin, end), by ops that may run again.
template <typename Select>
bool recompute_inside(const Trace& trace, const Needs& needs, Region region, Plan& plan,
                      std::string_view reason, Select select) {
  bool any = false;
  for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
    if (needs.runs_once[i]) continue;
    for (const TensorId output : trace.outputs(trace.ops[i])) {
      if (trace[output].storage != output || needs.uses[index(output)] == 0) continue;
      if (is_number(trace, i, output)) continue;
      if (last_forward_use(needs, output) >= region.end || !select(i, output)) continue;
      decide(plan, output, Action::Recompute, reason);
      any = true;
    }
  }
  return any;
}

// The function of a segment runs again as a whole, up to the last op that holds anything: what no
// gradient needs is made with the rest, but where another segment reads it, too, and it stays. What
// is written over stays as well, and so nothing is made from it in vain. What is `kept` stays.
class WholeFunction {
 public:
  WholeFunction(const Trace& trace, const Needs& needs, const std::vector<bool>& kept, Plan& plan)
      : trace_(trace), needs_(needs), kept_(kept), plan_(plan), stays_(trace.tensors.size()) {}

  void rerun(Region region) {
    const std::size_t stop = index(end_of_reruns(trace_, needs_, region.begin, region.end));
    for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
      const Op& op = trace_.ops[i];
      if (is_view(op.kind)) continue;
      // What ranks exchange is not the function's: who gathers parameters does so where they are
      // read.
      const bool is_over = i >= stop || row_of(op.kind).work == Work::Exchange;
      const auto stays = [&](TensorId input) { return stays_[index(trace_[input].storage)]; };
      const bool runs = !needs_.runs_once[i] && std::ranges::none_of(trace_.inputs(op), stays);
      for (const TensorId output : trace_.outputs(op)) {
        if (trace_[output].storage != output || needs_.uses[index(output)] > 0) continue;
        if (kept_[index(output)])
          keep_for_recovery(plan_, output);
        else if (is_over)
          continue;
        else if (!runs)
          stays_[index(output)] = true;
        else if (last_forward_use(needs_, output) < region.end)
          decide(plan_, output, Action::Recompute, "made again with all else of its segment");
      }
    }
  }

 private:
  const Trace& trace_;
  const Needs& needs_;
  const std::vector<bool>& kept_;  ///< by tensor
  Plan& plan_;
  std::vector<bool> stays_;  ///< by storage: of what no gradient needs
};

// By block: which chunk of a pipeline stage it is of. No segment is of two: each is a module.
std::vector<std::int64_t> chunk_of_blocks(const Trace& trace) {
  const std::vector<std::int64_t> chunk_of = chunk_of_ops(trace);
  std::vector<std::int64_t> found;
  for (const Block& block : trace.blocks) found.push_back(chunk_of[index(block.begin)]);
  return found;
}

std::vector<Region> segments_of_blocks(const Trace& trace, std::size_t every) {
  const std::vector<std::int64_t> chunk = chunk_of_blocks(trace);
  std::vector<Region> segments;
  for (std::size_t first = 0, next = 0; first < trace.blocks.size(); first = next) {
    for (next = first + 1; next < std::min(first + every, trace.blocks.size()); ++next)
      if (chunk[next] != chunk[first]) break;
    const OpId begin = trace.blocks[first].begin;
    segments.push_back({begin, begin, trace.blocks[next - 1].end});
  }
  return segments;
}

// What the model's own checkpointing wraps: a block, or blocks and what follows them.
std::vector<Region> segments_of_model(const Trace& trace) {
  const std::vector<std::int64_t> chunk = chunk_of_blocks(trace);
  std::vector<Region> segments;
  for (std::size_t b = 0; b < trace.blocks.size();) {
    const Block& first = trace.blocks[b];
    std::size_t next = b + 1;
    while (first.segment >= 0 && next < trace.blocks.size() &&
           trace.blocks[next].segment == first.segment && chunk[next] == chunk[b])
      ++next;
    const bool has_tail =
        first.segment >= 0 && next < trace.blocks.size() && chunk[next] == chunk[b];
    const OpId end = has_tail ? trace.blocks[next].begin : trace.blocks[next - 1].end;
    segments.push_back({first.begin, first.begin, end});
    b = next;
  }
  return segments;
}

// By tensor, `kept`: it stays.
Refusal checkpoint_segments(const Trace& trace, const Needs& needs,
                            const std::vector<Region>& segments, const std::vector<bool>& kept,
                            Plan& plan) {
  bool any = false;
  WholeFunction function(trace, needs, kept, plan);
  for (const Region& region : segments) {
    if (recompute_inside(trace, needs, region, plan, "recomputed from its segment's kept input",
                         [&](std::size_t, TensorId made) { return !kept[index(made)]; })) {
      function.rerun(region);
      any = true;
    }
    add_region(plan, region);
  }
  number_chains(plan);
  return any ? Refusal{} : "no block keeps anything for its backward";
}

Refusal checkpoint_segments(const Trace& trace, const Needs& needs,
                            const std::vector<Region>& segments, Plan& plan) {
  return checkpoint_segments(trace, needs, segments, std::vector<bool>(trace.tensors.size()), plan);
}

Refusal checkpoint_by_op(const Trace& trace, const Needs& needs, Plan& plan) {
  const std::vector<Region> segments = segments_of_model(trace);
  const bool has_graphs = is_compiled(find_framework(trace.step.framework));
  const OpId unknown = has_graphs ? no_op : with_unknown_calls(trace, segments);
  if (unknown != no_op)
    return fmt::format("which calls '{}' makes, of which a policy could keep some, is not known",
                       trace[unknown].name);
  plan.quirks.holds_unread = !has_graphs;  // of a graph only what the backward reads is saved
  return checkpoint_segments(trace, needs, segments,
                             kept_results(trace, kept_by_op(trace, segments)), plan);
}

// The ops from the product that makes the scores to the one that mixes the values.
std::optional<Region> attention_core(const Trace& trace, const Block& block) {
  OpId softmax = no_op, scores = no_op, mix = no_op;
  for (std::size_t i = index(block.begin); i < index(block.end); ++i) {
    const OpKind kind = trace.ops[i].kind;
    if (kind == OpKind::Softmax) softmax = static_cast<OpId>(i);
    if (kind != OpKind::MatMul) continue;
    if (softmax == no_op) scores = static_cast<OpId>(i);
    if (softmax != no_op && mix == no_op) mix = static_cast<OpId>(i);
  }
  if (softmax == no_op || scores == no_op || mix == no_op) return std::nullopt;
  return Region{scores, scores, static_cast<OpId>(index(mix) + 1)};
}

Refusal checkpoint_attention(const Trace& trace, const Needs& needs, Plan& plan) {
  bool any = false;
  for (const Block& block : trace.blocks) {
    const std::optional<Region> core = attention_core(trace, block);
    if (!core) continue;
    const std::int64_t map_size = numel(trace[trace.outputs(trace[core->begin])[0]].shape);
    any |= recompute_inside(
        trace, needs, *core, plan, "an attention map, recomputed from the kept queries and keys",
        [&](std::size_t, TensorId t) { return numel(trace[t].shape) == map_size; });
    add_region(plan, *core);
  }
  number_chains(plan);
  if (any) return {};
  const bool is_fused =
      std::ranges::find(trace.ops, OpKind::FlashAttention, &Op::kind) != trace.ops.end();
  return is_fused ? "attention is fused here: it keeps no map that could be recomputed"
                  : "no block makes an attention map that could be recomputed";
}

}  // namespace

Refusal checkpoint_blocks(const Trace& trace, const Needs& needs,
                          const StrategyArguments& arguments, Plan& plan) {
  if (trace.blocks.empty()) return "the trace names no blocks to checkpoint";
  if (arguments.has("selective")) return checkpoint_attention(trace, needs, plan);
  if (arguments.has("op")) return checkpoint_by_op(trace, needs, plan);
  if (arguments.has("sqrt")) {
    const auto root = std::llround(std::sqrt(static_cast<double>(trace.blocks.size())));
    return checkpoint_segments(trace, needs,
                               segments_of_blocks(trace, static_cast<std::size_t>(root)), plan);
  }
  if (const auto every = arguments.number("every"))
    return checkpoint_segments(trace, needs,
                               segments_of_blocks(trace, static_cast<std::size_t>(*every)), plan);
  if (arguments.has("blocks"))
    return checkpoint_segments(trace, needs, segments_of_blocks(trace, 1), plan);
  return checkpoint_segments(trace, needs, segments_of_model(trace), plan);
}

Refusal overlap_recovery(const Trace&, const Needs&, const StrategyArguments&, Plan& plan) {
  if (plan.regions.empty()) return "nothing is recovered that could overlap (add checkpoint)";
  plan.overlap = true;
  return {};
}

}  // namespace tidemark
