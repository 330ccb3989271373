// Couples residual blocks: they become reversible (arXiv 2302.04869).
//   forward   Y1 = X1 + F(X2)        Y2 = X2 + G(Y1)
// A residual block is coupled by changing what its two adds read: F's branch reads the second
// stream and adds to the first, G's branch reads the new first stream and adds to the second. The
// adds' outputs keep their tensors, so the next block already reads the right stream.
#include <algorithm>

#include "simulator/strategies/halves.h"
#include "simulator/strategies/strategy.h"
#include "simulator/strategies/trace_edit.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

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
    like.name = edit_.name(block.name + ".x1");
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
      like.name = edit_.name(block.name + ".fuse");
      return edit_.emit(OpKind::Average, like.name, {streams_.x1, streams_.x2}, like);
    }
    const std::int64_t width = like.shape.back();
    like.name = edit_.name(block.name + ".fuse.concat");
    like.shape = like.shape.with_back(2 * width);
    const TensorId both = edit_.emit(OpKind::Concat, like.name, {streams_.x1, streams_.x2}, like);
    const TensorId hidden = emit_linear(block.name + ".fuse.fc1", both, 2 * width);
    Tensor activated = edit_[hidden];
    activated.storage = no_tensor, activated.name = edit_.name(block.name + ".fuse.gelu");
    const TensorId active = edit_.emit(OpKind::Gelu, activated.name, {hidden}, activated);
    const TensorId fused = emit_linear(block.name + ".fuse.fc2", active, width);
    Tensor cast = edit_[fused];  // the next stage goes on in the streams' dtype
    if (cast.dtype == like.dtype) return fused;
    cast.name = edit_.name(block.name + ".fuse.cast"), cast.dtype = like.dtype,
    cast.storage = no_tensor;
    return edit_.emit(OpKind::Cast, cast.name, {fused}, cast);
  }

  TensorId emit_linear(const std::string& name, TensorId x, std::int64_t out) {
    const Tensor& parameter = first_parameter();
    const Shape weight = {out, edit_[x].shape.back()};
    const TensorId w = to_compute(edit_.parameter(edit_.name(name + ".weight"), weight, parameter));
    const TensorId b = to_compute(edit_.parameter(edit_.name(name + ".bias"), {out}, parameter));
    const TensorId read = to_compute(x);
    Tensor y = edit_[read];
    y.name = edit_.name(name), y.shape = y.shape.with_back(out), y.storage = no_tensor;
    return edit_.emit(OpKind::Linear, y.name, {read, w, b}, y);
  }

  const Tensor& first_parameter() const {
    return *std::ranges::find(trace_.tensors, Category::Parameter, &Tensor::category);
  }

  TensorId to_compute(TensorId x) {
    const DType compute = compute_dtype_of(precision_of(trace_.step));
    Tensor cast = edit_[x];
    if (cast.dtype == compute || !find_framework(trace_.step.framework).autocast_casts) return x;
    cast.name = edit_.name(cast.name + ".cast"), cast.dtype = compute,
    cast.category = Category::Activation;
    cast.trainable = false, cast.storage = no_tensor, cast.held_until = no_op;
    return edit_.emit(OpKind::Cast, cast.name, {x}, cast);
  }

  const Trace& trace_;
  const std::vector<bool> can_be_coupled_;  ///< by block
  TraceEdit edit_;
  Streams streams_{no_tensor, no_tensor};
  bool coupled_ = false;
};

// Each half of a coupling is a function of its own, which returns before the next one runs. Nor is
// anything named until a norm that stands in front of its maker now.
void end_variables_with_their_halves(Trace& trace) {
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& maker = trace.ops[i];
    if (maker.part == Part::None) continue;
    const auto is_beside = [&](const Op& op) {
      return op.part == maker.part && op.block == maker.block;
    };
    for (const TensorId output : trace.outputs(maker)) {
      OpId& held = trace.tensors[index(output)].held_until;
      const bool is_behind = held != no_op && index(held) >= i;
      if (held == no_op || (is_behind && is_beside(trace[held]))) continue;
      std::size_t last = i;
      while (is_beside(trace.ops[last + 1])) ++last;
      held = static_cast<OpId>(last);
    }
  }
}

}  // namespace

Rewritten couple_blocks(const Trace& trace, const StrategyArguments&) {
  Coupling coupling(trace);
  if (!coupling.run()) return "no block has two residual branches that could be coupled";
  Trace coupled = coupling.finish();
  end_variables_with_their_halves(coupled);
  return coupled;
}

}  // namespace tidemark
