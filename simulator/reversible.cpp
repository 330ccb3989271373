// Reversible blocks (arXiv 2302.04869) and PaReprop (arXiv 2306.09342).
//   forward   Y1 = X1 + F(X2)        Y2 = X2 + G(Y1)
//   inverse   X2 = Y2 − G(Y1)        X1 = Y1 − F(X2)
// A residual block is coupled by changing what its two adds read: F's branch reads the second
// stream and adds to the first, G's branch reads the new first stream and adds to the second. The
// adds' outputs keep their tensors, so the next block already reads the right stream.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "simulator/consumers.h"
#include "simulator/needs.h"
#include "simulator/strategy.h"
#include "simulator/trace_edit.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

struct OpRange {
  std::size_t begin = 0, end = 0;
};

// The ops of one half of a block; the residual add divides them: what follows it is the norm of a
// post-norm block.
struct Half {
  OpRange ops;
  std::size_t add = 0;
};

std::optional<Half> half_of(const Trace& trace, const Block& block, Part part) {
  Half half{{index(block.end), index(block.begin)}, 0};
  int adds = 0;
  for (std::size_t i = index(block.begin); i < index(block.end); ++i) {
    const Op& op = trace.ops[i];
    if (op.part != part) continue;
    half.ops = {std::min(half.ops.begin, i), std::max(half.ops.end, i + 1)};
    if (!op.residual) continue;
    // An add that changes the dtype of its stream cannot be undone.
    if (trace[trace.inputs(op)[0]].dtype != trace[trace.outputs(op)[0]].dtype) return std::nullopt;
    half.add = i, ++adds;
  }
  if (adds != 1) return std::nullopt;
  return half;
}

// By block: has it two halves, and so have all blocks of its stack?
std::vector<bool> can_be_coupled(const Trace& trace) {
  std::vector<bool> can(trace.blocks.size());
  std::set<std::int32_t> broken;
  for (std::size_t b = 0; b < can.size(); ++b) {
    const Block& block = trace.blocks[b];
    const auto f = half_of(trace, block, Part::F), g = half_of(trace, block, Part::G);
    can[b] = block.stack >= 0 && f && g && f->ops.end == g->ops.begin;
    if (!can[b]) broken.insert(block.stack);
  }
  for (std::size_t b = 0; b < can.size(); ++b)
    if (broken.contains(trace.blocks[b].stack)) can[b] = false;
  return can;
}

struct Streams {
  TensorId x1, x2;
};

class Coupling {
 public:
  explicit Coupling(const Trace& trace)
      : trace_(trace), can_be_coupled_(can_be_coupled(trace)), edit_(trace) {}

  bool run() {
    std::size_t op = 0;
    for (std::size_t b = 0; b < trace_.blocks.size(); ++b) {
      const Block& block = trace_.blocks[b];
      for (; op < index(block.begin); ++op) edit_.copy(static_cast<OpId>(op));
      op = index(block.end);
      if (!couple(b)) copy(block);
    }
    for (; op < trace_.ops.size(); ++op) edit_.copy(static_cast<OpId>(op));
    return coupled_;
  }

  Trace finish() { return edit_.finish(); }

 private:
  void copy(const Block& block) {
    for (std::size_t i = index(block.begin); i < index(block.end); ++i)
      edit_.copy(static_cast<OpId>(i));
  }

  bool couple(std::size_t b) {
    if (!can_be_coupled_[b]) return false;
    const Block& block = trace_.blocks[b];
    const auto f = half_of(trace_, block, Part::F), g = half_of(trace_, block, Part::G);
    if (!continues(b, b - 1)) enter_stack(block);
    edit_.feed_block(b, streams_.x2);
    streams_.x1 = emit_half(*f, block.input, streams_.x2, streams_.x1);    // Y1 = X1 + F(X2)
    streams_.x2 = emit_half(*g, result_of(*f), streams_.x1, streams_.x2);  // Y2 = X2 + G(Y1)
    coupled_ = true;
    if (!continues(b, b + 1)) edit_.redirect(result_of(*g), fuse(block, b));
    return true;
  }

  // Both streams start as the same tensor; their gradients are summed when both are complete.
  void enter_stack(const Block& block) {
    streams_.x2 = edit_.map(block.input);
    Tensor like = edit_[streams_.x2];
    like.name = block.name + ".x1";
    streams_.x1 = edit_.emit(OpKind::View, like.name, {streams_.x2}, like);
  }

  bool continues(std::size_t b, std::size_t neighbour) const {
    return neighbour < trace_.blocks.size() &&
           trace_.blocks[neighbour].stack == trace_.blocks[b].stack;
  }

  // What the ops after this half read: the add's output, or that of the norm behind it.
  TensorId result_of(const Half& half) const {
    return trace_.outputs(trace_.ops[half.ops.end - 1])[0];
  }

  // other + Half(stream). A post-norm half becomes pre-norm: its norm reads the stream first.
  TensorId emit_half(const Half& half, TensorId entry, TensorId stream, TensorId other) {
    const TensorId sum = trace_.outputs(trace_.ops[half.add])[0];
    TensorId read = stream;
    if (half.add + 1 < half.ops.end) {
      edit_.redirect(sum, stream);
      for (std::size_t i = half.add + 1; i < half.ops.end; ++i) edit_.copy(static_cast<OpId>(i));
      read = edit_.map(result_of(half));
    }
    edit_.redirect(entry, read);
    for (std::size_t i = half.ops.begin; i < half.add; ++i) edit_.copy(static_cast<OpId>(i));
    edit_.redirect(sum, no_tensor);
    edit_.copy_with_input0(static_cast<OpId>(half.add), other);
    return edit_.map(sum);
  }

  // Two streams become one: their mean before a head; between the stages of a hierarchical model a
  // two-layer perceptron over both (the authors' concat_linear_2).
  TensorId fuse(const Block& block, std::size_t b) {
    Tensor like = edit_[streams_.x2];
    like.storage = no_tensor, like.held_until = no_op;
    const bool is_last = b + 1 >= trace_.blocks.size();
    if (is_last) {
      like.name = block.name + ".fuse";
      return edit_.emit(OpKind::Average, like.name, {streams_.x1, streams_.x2}, like);
    }
    const std::int64_t width = like.shape.back();
    like.name = block.name + ".fuse.concat";
    like.shape = like.shape.with_back(2 * width);
    const TensorId both = edit_.emit(OpKind::Concat, like.name, {streams_.x1, streams_.x2}, like);
    const TensorId hidden = emit_linear(block.name + ".fuse.fc1", both, 2 * width);
    Tensor activated = edit_[hidden];
    activated.storage = no_tensor, activated.name = block.name + ".fuse.gelu";
    const TensorId active = edit_.emit(OpKind::Gelu, activated.name, {hidden}, activated);
    const TensorId fused = emit_linear(block.name + ".fuse.fc2", active, width);
    Tensor cast = edit_[fused];  // the next stage goes on in the streams' dtype
    if (cast.dtype == like.dtype) return fused;
    cast.name = block.name + ".fuse.cast", cast.dtype = like.dtype, cast.storage = no_tensor;
    return edit_.emit(OpKind::Cast, cast.name, {fused}, cast);
  }

  TensorId emit_linear(const std::string& name, TensorId x, std::int64_t out) {
    const Tensor& parameter = first_parameter();
    const Shape weight = {out, edit_[x].shape.back()};
    const TensorId w = to_compute(edit_.parameter(name + ".weight", weight, parameter));
    const TensorId b = to_compute(edit_.parameter(name + ".bias", {out}, parameter));
    const TensorId read = to_compute(x);
    Tensor y = edit_[read];
    y.name = name, y.shape = y.shape.with_back(out), y.storage = no_tensor;
    return edit_.emit(OpKind::Linear, name, {read, w, b}, y);
  }

  const Tensor& first_parameter() const {
    return *std::ranges::find(trace_.tensors, Category::Parameter, &Tensor::category);
  }

  TensorId to_compute(TensorId x) {
    const DType compute = compute_dtype_of(precision_of(trace_.step));
    Tensor cast = edit_[x];
    if (cast.dtype == compute || !find_framework(trace_.step.framework).autocast_casts) return x;
    cast.name += ".cast", cast.dtype = compute, cast.category = Category::Activation;
    cast.trainable = false, cast.storage = no_tensor, cast.held_until = no_op;
    return edit_.emit(OpKind::Cast, cast.name, {x}, cast);
  }

  const Trace& trace_;
  const std::vector<bool> can_be_coupled_;  ///< by block
  TraceEdit edit_;
  Streams streams_{no_tensor, no_tensor};
  bool coupled_ = false;
};

// --- the plan
// --------------------------------------------------------------------------------------

// A coupled block of the rewritten trace.
struct Coupled {
  std::size_t block;
  OpId begin, split, end;
  TensorId y1, y2;   ///< outputs of the two adds
  TensorId f, g;     ///< branches
  bool first, last;  ///< of its stack
  std::int32_t stack;
};

std::vector<Coupled> coupled_blocks(const Trace& trace) {
  std::vector<Coupled> found;
  const std::vector<bool> can = can_be_coupled(trace);
  for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
    if (!can[b]) continue;
    const Block& block = trace.blocks[b];
    const auto f = half_of(trace, block, Part::F), g = half_of(trace, block, Part::G);
    const Op& add1 = trace.ops[f->add];
    const Op& add2 = trace.ops[g->add];
    const auto same_stack = [&](std::size_t other) {
      return other < trace.blocks.size() && trace.blocks[other].stack == block.stack;
    };
    found.push_back({b, block.begin, static_cast<OpId>(g->ops.begin), block.end,
                     trace.outputs(add1)[0], trace.outputs(add2)[0], trace.inputs(add1)[1],
                     trace.inputs(add2)[1], !same_stack(b - 1), !same_stack(b + 1), block.stack});
  }
  return found;
}

void decide_block(const Trace& trace, const Needs& needs, const std::vector<OpId>& last,
                  const Coupled& block, Plan& plan) {
  for (std::size_t i = index(block.begin); i < index(block.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i])) {
      if (trace[output].storage != output || needs.uses[index(output)] == 0) continue;
      if (output == block.y1 || output == block.y2 || last[index(output)] >= block.end) continue;
      decide(plan, output, Action::Recompute, "recomputed inside its reversible block");
    }
  const TensorId entry = trace[trace.blocks[block.block].input].storage;
  if (block.first && needs.producer[index(entry)] != no_op && needs.uses[index(entry)] > 0)
    decide(plan, entry, Action::Reconstruct, "the entry of a reversible stack, X = Y − F or G");
  if (block.last) return;
  for (const TensorId state : {block.y1, block.y2})
    decide(plan, trace[state].storage, Action::Reconstruct,
           "a state of a reversible stack, recovered from the next: X = Y − F or G");
}

Refusal reconstruct(const Trace& trace, Plan& plan) {
  const Needs needs = derive_needs(trace);
  const std::vector<OpId> last = last_reads(trace);
  const std::vector<Coupled> blocks = coupled_blocks(trace);
  if (blocks.empty()) return "no block has two residual branches that could be coupled";
  std::vector<Region> regions;
  for (const Coupled& block : blocks) {
    decide_block(trace, needs, last, block, plan);
    regions.push_back({block.begin, block.split, block.end, block.stack});
  }
  // Regions of other techniques inside of a block are recovered with it.
  for (const Region& old : plan.regions) {
    const auto inside = [&](const Region& r) { return old.begin >= r.begin && old.end <= r.end; };
    if (std::ranges::none_of(regions, inside)) regions.push_back(old);
  }
  std::ranges::sort(regions, {}, &Region::begin);
  plan.regions = std::move(regions);
  return {};
}

// One stream recovers half a block at a time: the lower peak.
void split_into_halves(Plan& plan) {
  std::vector<Region> halves;
  for (const Region& region : plan.regions) {
    if (region.split > region.begin)
      halves.push_back({region.begin, region.begin, region.split, region.chain});
    halves.push_back({region.split, region.split, region.end, region.chain});
  }
  plan.regions = std::move(halves);
}

// What variables of the public code still name. `graph`: saved tensors of a half live until its
// gradients are done (retain_graph); `context`: the states and branches that a Python tuple holds
// until the next block's turn.
enum class Names : std::uint8_t { Graph, Context };

template <typename Hold>
void hold_graph(const Trace& trace, const Plan& plan, const Coupled& block, Hold hold) {
  for (std::size_t i = index(block.begin); i < index(block.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (plan.actions[index(output)] == Action::Recompute)
        hold(output, static_cast<OpId>(i) < block.split ? block.begin : block.split);
}

// The tuple is replaced when the block before has been recovered: at the first of its gradients.
template <typename Hold>
void hold_context(const Coupled& block, Hold hold) {
  const OpId next_turn =
      index(block.begin) == 0 ? no_op : static_cast<OpId>(index(block.begin) - 1);
  hold(block.f, next_turn);
  hold(block.g, next_turn);
  if (block.last) return;
  hold(block.y1, next_turn);
  hold(block.y2, static_cast<OpId>(index(block.end) - 1));  // X2 of the block behind, in its tuple
}

void hold_as_released(const Trace& trace, Names names, Plan& plan) {
  plan.value_release_after.assign(trace.tensors.size(), no_op);
  plan.gradient_release_after.assign(trace.tensors.size(), no_op);
  const auto hold = [&](TensorId t, OpId op) {
    plan.value_release_after[index(trace[t].storage)] = op;
  };
  OpId stack_begin{};
  for (const Coupled& block : coupled_blocks(trace)) {
    if (block.first) stack_begin = block.begin;
    for (const TensorId state : {block.y1, block.y2}) {
      const OpId until = block.last ? stack_begin : block.begin;
      plan.gradient_release_after[index(state)] = until;
      hold(state, until);
    }
    if (names == Names::Graph) {
      hold_graph(trace, plan, block, hold);
    } else {
      hold_context(block, hold);
    }
  }
}

}  // namespace

Rewritten couple_blocks(const Trace& trace, const StrategyArguments&) {
  Coupling coupling(trace);
  if (!coupling.run()) return "no block has two residual branches that could be coupled";
  return coupling.finish();
}

Refusal reconstruct_blocks(const Trace& trace, const StrategyArguments& arguments, Plan& plan) {
  if (Refusal refusal = reconstruct(trace, plan); !refusal.empty()) return refusal;
  split_into_halves(plan);
  if (arguments.has("released")) hold_as_released(trace, Names::Graph, plan);
  return {};
}

Refusal reconstruct_in_parallel(const Trace& trace, const StrategyArguments& arguments,
                                Plan& plan) {
  if (Refusal refusal = reconstruct(trace, plan); !refusal.empty()) return refusal;
  plan.overlap = true;
  if (arguments.has("hoist"))
    for (Region& region : plan.regions) region.chain = 0;
  if (arguments.has("released")) {
    hold_as_released(trace, Names::Context, plan);
    plan.released.synchronizes_host = plan.released.two_new_streams = true;
  }
  return {};
}

}  // namespace tidemark
