// Example, two ranks:
//   alone   x [b, s, h] ─► q, k, v [b, a, s, d] ─attention─► [b, a, s, d] ─► …
//   rank    x [b, s/2, h] ─► q, k, v [b, a, s/2, d]
//                            k, v ─all_gather─► [b, a, s, d] ─attention of q─► [b, a, s/2, d] ─► …
// or, of ranks that exchange heads,
//                            q, k, v ─all_to_all─► [b, a/2, s, d] ─attention─► ─all_to_all─► …
// Which dimension counts tokens is found from how the ops go together, from the words on. Of a
// causal sequence cut into 2c pieces rank i has pieces i and 2c − 1 − i, so that all do as much.
#include "simulator/parallel/context_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <variant>

#include "base/error.h"
#include "base/quoted.h"
#include "base/units.h"
#include "simulator/parallel/context_exchanges.h"
#include "simulator/parallel/undivided.h"
#include "traces/engine_linear.h"
#include "traces/exchange_axis.h"
#include "traces/expert_ops.h"
#include "traces/fp8_linear.h"
#include "traces/latent_ops.h"
#include "traces/scan_ops.h"

namespace tidemark {
namespace {

constexpr std::int8_t uncut = -1;

template <typename... Args>
[[noreturn]] void refuse_context(fmt::format_string<Args...> why, Args&&... args) {
  throw InputError("--mesh: cp: " + fmt::format(why, std::forward<Args>(args)...));
}

Shape with_size(const Shape& shape, std::size_t dimension, std::int64_t size) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[dimension] = size;
  return Shape(dims);
}

// Elements up to and with the dimension.
std::int64_t elements_through(const Shape& shape, std::size_t dimension) {
  const auto dims = shape.dims().first(dimension + 1);
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

/// By tensor: the dimension that counts tokens, or uncut.
class TokenSearch {
 public:
  explicit TokenSearch(const Trace& trace)
      : trace_(trace), cut_(trace.tensors.size(), uncut), made_by_(trace.tensors.size(), no_op) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      for (const TensorId output : trace.outputs(trace.ops[i]))
        made_by_[index(output)] = static_cast<OpId>(i);
  }

  std::vector<std::int8_t> run() {
    find_tokens();
    if (const std::string why = undivided(trace_, Axis::Context); !why.empty())
      refuse_context("{}", why);
    check_sizes();
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      const bool counts_tokens = tensor.shape.rank() == 2 && !is_floating(tensor.dtype) &&
                                 tensor.category == Category::Input && made_by_[t] == no_op &&
                                 is_of_tokens(tensor.shape.back());
      if (counts_tokens) cut_[t] = 1;
    }
    for (const Op& op : trace_.ops)
      if (std::ranges::any_of(trace_.inputs(op), [&](TensorId x) { return is_cut(x); })) visit(op);
    return cut_;
  }

  std::int64_t tokens() const { return tokens_; }

 private:
  bool is_cut(TensorId tensor) const { return cut_[index(tensor)] != uncut; }
  std::int8_t& cut(TensorId tensor) { return cut_[index(tensor)]; }
  const Shape& shape(TensorId tensor) const { return trace_[tensor].shape; }
  TensorId input(const Op& op, std::size_t i = 0) const { return trace_.inputs(op)[i]; }
  TensorId output(const Op& op) const { return trace_.outputs(op)[0]; }
  std::string name_of(TensorId tensor) const { return quoted(trace_[tensor].name); }

  // Labels may have one more, of which the first is left out.
  bool is_of_tokens(std::int64_t size) const { return size == tokens_ || size == tokens_ + 1; }

  bool is_of_words(TensorId tensor) const {
    const InputFill* const fill = fill_of(trace_, trace_[tensor]);
    return fill && std::holds_alternative<fill::Words>(*fill) && shape(tensor).rank() == 2;
  }

  // Words are looked up in a table.
  void find_tokens() {
    for (const Op& op : trace_.ops)
      if (tokens_ == 0 && op.kind == OpKind::Embedding && is_of_words(input(op)))
        tokens_ = shape(input(op)).back();
    if (tokens_ == 0) refuse_context("the step reads no sequences of words that could be cut");
  }

  void check_sizes() const {
    const std::int64_t ranks = trace_.step.mesh[Axis::Context];
    if (tokens_ % (2 * ranks) == 0) return;
    Mesh nearest = trace_.step.mesh;
    const std::int64_t shared = tokens_ % 2 == 0 ? std::gcd(tokens_ / 2, ranks) : 1;
    nearest[Axis::Context] = shared;
    nearest[Axis::Data] *= ranks / shared;  // as many GPUs
    refuse_context("{} tokens are no {} pieces, two for each of {} ranks (nearest: --mesh {})",
                   tokens_, 2 * ranks, ranks, to_text(nearest));
  }

  void visit(const Op& op) {
    switch (op.kind) {
      case OpKind::Embedding:
        return void(cut(output(op)) = cut(input(op)));
      case OpKind::Linear:
        return linear(op);
      case OpKind::FlashAttention:
        return attention(op);
      case OpKind::View:
      case OpKind::Select:
      case OpKind::Split:
      case OpKind::Copy:
        return move(op);
      case OpKind::LayerNorm:
      case OpKind::RmsNorm:
      case OpKind::Softmax:
      case OpKind::LogSoftmax:
        return elementwise(op, false);
      case OpKind::Gelu:
      case OpKind::GeluComposed:
      case OpKind::Silu:
      case OpKind::Tanh:
      case OpKind::Sigmoid:
      case OpKind::Relu:
      case OpKind::Add:
      case OpKind::Mul:
      case OpKind::Scale:
      case OpKind::Average:
      case OpKind::Dropout:
      case OpKind::Cast:
      case OpKind::Rope:
      case OpKind::Concat:
      case OpKind::RepeatHeads:
        return elementwise(op, true);
      case OpKind::NllLoss:
        if (!is_cut(input(op)) || !is_cut(input(op, 1))) need_whole(op);
        return;
      case OpKind::MatMul:
        refuse_scores();
      case OpKind::Opaque:
        if (is_engine_product(trace_, op)) return product(op);
        if (is_float8_linear(trace_, op)) return linear(op);
        if (const auto kind = expert_op(trace_, op))
          return is_activation(*kind) ? void(cut(output(op)) = cut(input(op))) : rows(op);
        if (is_of_each_head(trace_, op)) return elementwise(op, false);
        if (scan_op(trace_, op))
          refuse_context(
              "{} scans all tokens in turn, which is not shared by ranks yet (take cp=1)",
              quoted(op.name));
        refuse_context("nobody knows which tokens of {} a rank would have (take cp=1)",
                       quoted(op.name));
      case OpKind::MsLayerNorm:
      case OpKind::MsRmsNorm:
      case OpKind::ReGelu2:
      case OpKind::ReSilu2:
      case OpKind::Conv2d:
      case OpKind::DropPath:
      case OpKind::MeanPool:
      case OpKind::MaxPool:
      case OpKind::Replicate:
      case OpKind::AllReduce:
      case OpKind::AllGather:
      case OpKind::ReduceScatter:
      case OpKind::Scatter:
      case OpKind::Receive:
      case OpKind::Send:
      case OpKind::VocabularyLoss:
        return need_whole(op);
    }
  }

  [[noreturn]] void refuse_scores() const {
    refuse_context(
        "scores in memory are of all tokens; context ranks need a fused kernel (take --attention "
        "flash)");
  }

  // A classifier's, or logits against labels of the tokens behind them.
  [[noreturn]] void refuse_some_tokens(const Op& op) const {
    const std::int64_t left = numel(shape(output(op))), all = numel(shape(input(op)));
    if (left * tokens_ == all)
      refuse_context("the head reads one token of each sequence, which one rank has (take cp=1)");
    if (left * tokens_ == all * (tokens_ - 1))
      refuse_context("the loss moves logits by a token, which another rank may have (take cp=1)");
    need_whole(op);
  }

  [[noreturn]] void need_whole(const Op& op) const {
    if (op.kind == OpKind::LogSoftmax)
      refuse_context(
          "the loss weighs all tokens of a sequence against each other, of which each rank has "
          "some "
          "(take cp=1)");
    refuse_context("{} needs all tokens of {}, of which each rank has some (take cp=1)",
                   quoted(op.name), name_of(input(op)));
  }

  void linear(const Op& op) {
    const TensorId x = input(op);
    if (!is_cut(x) || cut(x) + 1 == static_cast<int>(shape(x).rank())) need_whole(op);
    cut(output(op)) = cut(x);
  }

  // Visits of experts are rows; what reads tokens writes as many.
  void product(const Op& op) {
    for (const TensorId written : trace_.outputs(op)) cut(written) = cut(input(op));
  }

  void attention(const Op& op) {
    for (std::size_t i = 0; i < 3; ++i)
      if (cut(input(op, i)) != 2) need_whole(op);
    if (op.inputs > 3)
      refuse_context("a mask{} is added to the scores of all tokens (take --attention flash{})",
                     trace_.step.padded ? " of padding" : "",
                     trace_.step.padded ? " without --padded" : "");
    for (const TensorId written : trace_.outputs(op)) cut(written) = 2;
  }

  // Counted from the last dimension, where operands are aligned. Tables by token are cut, too.
  void elementwise(const Op& op, bool may_cut_back) {
    int from_back = -1;
    for (const TensorId x : trace_.inputs(op)) {
      if (!is_cut(x)) continue;
      const int here = static_cast<int>(shape(x).rank()) - 1 - cut(x);
      if (from_back >= 0 && from_back != here) need_whole(op);
      from_back = here;
    }
    if (from_back == 0 && !may_cut_back) need_whole(op);
    const auto at = static_cast<std::size_t>(from_back);
    for (const TensorId x : trace_.inputs(op)) {
      const bool is_whole = !is_cut(x) && shape(x).rank() > at && shape(x).back(at) == tokens_;
      if (!is_whole) continue;
      if (!cut_table(x, at))
        refuse_context("{} reads all tokens of {} beside those that a rank has (take cp=1)",
                       quoted(op.name), name_of(x));
    }
    for (const TensorId written : trace_.outputs(op)) {
      const Shape& made = shape(written);
      if (made.rank() == shape(output(op)).rank() && made.back(at) == shape(output(op)).back(at))
        cut(written) = static_cast<std::int8_t>(made.rank() - 1 - at);
    }
    if (!is_cut(output(op))) need_whole(op);
  }

  // An input by token, or what is cast of it: which ranks are is known without any op.
  bool cut_table(TensorId x, std::size_t from_back) {
    if (trace_[x].category == Category::Parameter) return false;
    if (const OpId made_by = made_by_[index(x)]; made_by != no_op) {
      const bool is_cast = trace_[made_by].kind == OpKind::Cast;
      if (!is_cast || !cut_table(input(trace_[made_by]), from_back)) return false;
    }
    cut(x) = static_cast<std::int8_t>(shape(x).rank() - 1 - from_back);
    return true;
  }

  // Tokens, and visits of experts, are rows.
  void rows(const Op& op) {
    if (cut(input(op)) != 0) need_whole(op);
    for (const TensorId y : trace_.outputs(op)) cut(y) = 0;
  }

  void move(const Op& op) {
    const TensorId x = input(op);
    for (const TensorId y : trace_.outputs(op)) {
      cut(y) = moved(op, x, y);
      if (!is_cut(y)) refuse_some_tokens(op);
    }
  }

  std::int8_t moved(const Op& op, TensorId x, TensorId y) const {
    const auto transform = static_cast<LayoutTransform>(
        static_cast<int>(attribute(trace_, op, AttributeKey::LayoutTransform)));
    if (transform == LayoutTransform::ChannelsFirst && cut_[index(x)] == 2) refuse_scores();
    const Shape &from = shape(x), &to = shape(y);
    const std::int8_t old = cut_[index(x)];
    if (transform == LayoutTransform::SplitHeads) return old == 1 ? std::int8_t{2} : uncut;
    if (transform == LayoutTransform::MergeHeads) return old == 2 ? std::int8_t{1} : uncut;
    const bool is_part = numel(to) < numel(from);
    if (transform == LayoutTransform::Slice || (transform == LayoutTransform::Reshape && is_part)) {
      const auto at = static_cast<std::size_t>(old);
      const bool keeps_tokens =
          from.rank() == to.rank() && (to[at] == from[at] || (old == 1 && to[at] == tokens_));
      return keeps_tokens ? old : uncut;
    }
    return transform == LayoutTransform::Reshape ? reshaped(from, static_cast<std::size_t>(old), to)
                                                 : uncut;
  }

  // [b, t, w] → [(b t), w] and back: where the elements up to the tokens end, another dimension
  // must.
  std::int8_t reshaped(const Shape& from, std::size_t old, const Shape& to) const {
    const std::int64_t through = elements_through(from, old);
    for (std::size_t i = 0; i < to.rank(); ++i)
      if (elements_through(to, i) == through && to[i] % tokens_ == 0)
        return static_cast<std::int8_t>(i);
    return uncut;
  }

  const Trace& trace_;
  std::vector<std::int8_t> cut_;
  std::vector<OpId> made_by_;  ///< by tensor
  std::int64_t tokens_ = 0;
};

// Labels may have one token more than there are; sums of a kernel are filled up to whole units, as
// TraceBuilder::flash_attention() has them (kAlignLSE, 32).
void cut_tokens(const std::vector<std::int8_t>& cuts, std::int64_t tokens, Trace& trace) {
  const std::int64_t ranks = trace.step.mesh[Axis::Context];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (cuts[t] == uncut) continue;
    Shape& shape = trace.tensors[t].shape;
    const auto at = static_cast<std::size_t>(cuts[t]);
    const bool has_one_more = shape[at] == tokens + 1;
    shape = with_size(shape, at, shape[at] / ranks + (has_one_more ? 1 : 0));
  }
  for (const Op& op : trace.ops) {
    const bool fills_sums = op.kind == OpKind::FlashAttention && op.outputs > 1 &&
                            cuts[index(trace.outputs(op)[1])] != uncut &&
                            attribute(trace, op, AttributeKey::MemoryEfficient) != 0;
    if (!fills_sums) continue;
    Shape& sums = trace.tensors[index(trace.outputs(op)[1])].shape;
    sums = sums.with_back(round_up(tokens / ranks, 32));
  }
}

// Attention's results are of all tokens then, and of some heads.
void cut_heads_of_attention(Trace& trace, std::vector<std::int8_t>& cuts) {
  const std::int64_t ranks = trace.step.mesh[Axis::Context];
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::FlashAttention) continue;
    for (std::size_t i = 0; i < 3; ++i)
      if (const TensorId x = trace.inputs(op)[i]; trace[x].shape[1] % ranks != 0)
        refuse_context(
            "{} has {} heads, which {} ranks cannot exchange evenly (take --cp-form all-gather)",
            quoted(trace[x].name), trace[x].shape[1], ranks);
    for (const TensorId y : trace.outputs(op)) {
      cuts[index(y)] = uncut;
      Shape& shape = trace.tensors[index(y)].shape;
      if (shape.rank() > 2) shape = with_size(shape, 1, shape[1] / ranks);
    }
  }
}

}  // namespace

Trace cut_for_context(Trace trace) {
  if (trace.step.mesh[Axis::Context] == 1) return trace;
  TokenSearch search(trace);
  std::vector<std::int8_t> cuts = search.run();
  const bool has_heads = trace.step.context_form == ContextForm::AllToAll;
  if (has_heads) cut_heads_of_attention(trace, cuts);
  cut_tokens(cuts, search.tokens(), trace);
  return has_heads ? with_exchanged_heads(trace) : with_gathered_keys(trace);
}

}  // namespace tidemark
