// One walk in op order. Weights are cut when the linear that reads them is met, back through casts.
#include "simulator/parallel/tensor_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "base/error.h"
#include "base/quoted.h"
#include "base/units.h"
#include "simulator/parallel/moved_cut.h"
#include "simulator/parallel/own_products.h"
#include "simulator/parallel/undivided.h"
#include "traces/engine_linear.h"
#include "traces/exchange_axis.h"
#include "traces/expert_ops.h"
#include "traces/latent_ops.h"
#include "traces/padding_ops.h"
#include "traces/scan_ops.h"

namespace tidemark {
namespace {

constexpr std::int8_t whole = TensorCuts::whole;

template <typename Error = InputError, typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> why, Args&&... args) {
  throw Error("--mesh: tp: " + fmt::format(why, std::forward<Args>(args)...));
}

class CutSearch {
 public:
  explicit CutSearch(const Trace& trace)
      : trace_(trace),
        ranks_(trace.step.mesh[Axis::Tensor]),
        producer_(trace.tensors.size(), no_op),
        is_part_of_sum_(trace.tensors.size()),
        own_(own_products(trace)),
        cuts_(TensorCuts::none(trace)) {
    cuts_.is_shared = own_.is_shared;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      for (const TensorId output : trace.outputs(trace.ops[i]))
        producer_[index(output)] = static_cast<OpId>(i);
  }

  TensorCuts run() && {
    if (trace_.blocks.empty()) refuse("the step names no blocks whose linears could be shared");
    const Tuning::Kind tuning = trace_.step.tuning.kind;
    if (tuning == Tuning::Kind::Lora || tuning == Tuning::Kind::LoraFa ||
        tuning == Tuning::Kind::Prompt || tuning == Tuning::Kind::Prefix)
      refuse(
          "adapters and learned tokens are not shared among ranks yet (take --tuning full or "
          "frozen)");
    if (const std::string why = undivided(trace_, Axis::Tensor); !why.empty()) refuse("{}", why);
    find_table();
    find_scores();
    if (trace_.step.sequence_parallel) cuts_.scatters = sequence_scatters(trace_, table_);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      for (const SequenceScatter& scatter : cuts_.scatters)
        if (static_cast<OpId>(i) == scatter.before) take_part(scatter.sequence);
      visit(static_cast<OpId>(i));
    }
    check_sizes();
    return std::move(cuts_);
  }

 private:
  std::int8_t& cut(TensorId tensor) { return cuts_.dimension[index(tensor)]; }
  const Shape& shape(TensorId tensor) const { return trace_[tensor].shape; }
  TensorId input(const Op& op, std::size_t i = 0) const { return trace_.inputs(op)[i]; }
  TensorId output(const Op& op, std::size_t i = 0) const { return trace_.outputs(op)[i]; }
  std::string name_of(TensorId tensor) const { return quoted(trace_[tensor].name); }

  bool is_cut_at_back(TensorId tensor) {
    return cut(tensor) != whole && cut(tensor) + 1 == static_cast<int>(shape(tensor).rank());
  }
  std::int8_t back(TensorId tensor) const {
    return static_cast<std::int8_t>(shape(tensor).rank() - 1);
  }

  // The largest table is that of words; positions and types are few, and each rank has them all.
  void find_table() {
    for (const Op& op : trace_.ops)
      if (op.kind == OpKind::Embedding &&
          (table_ == no_op || shape(input(op, 1))[0] > shape(input(trace_[table_], 1))[0]))
        table_ = static_cast<OpId>(&op - trace_.ops.data());
  }

  // The linears whose results become log-probabilities of words, through ops of one input: one for
  // each token that is predicted.
  void find_scores() {
    is_head_.assign(trace_.ops.size(), false);
    if (table_ == no_op) return;
    for (const Op& op : trace_.ops) {
      if (op.kind != OpKind::LogSoftmax) continue;
      OpId made_by = producer_[index(input(op))];
      while (made_by != no_op && trace_[made_by].inputs == 1)
        made_by = producer_[index(input(trace_[made_by]))];
      const bool is_of_words =
          made_by != no_op && trace_[made_by].kind == OpKind::Linear &&
          shape(input(trace_[made_by], 1))[0] == shape(input(trace_[table_], 1))[0];
      if (is_of_words) is_head_[index(made_by)] = true;
    }
  }

  void take_part(TensorId sequence) {
    if (shape(sequence).rank() != 3)
      refuse("{} is {}; --sp needs [batch, tokens, width]", name_of(sequence),
             to_text(shape(sequence)));
    cut(sequence) = sequence_dimension;
  }

  bool is_sequence_cut_from(OpId op) const {
    return trace_.step.sequence_parallel &&
           std::ranges::none_of(cuts_.scatters, [&](const SequenceScatter& scatter) {
             return scatter.whole_from <= op && op < scatter.before;
           });
  }

  void visit(OpId id) {
    const Op& op = trace_[id];
    if (op.kind != OpKind::Opaque && std::ranges::any_of(trace_.inputs(op), [&](TensorId x) {
          return cuts_.is_of_expert[index(x)];
        }))
      mark_of_expert(trace_.outputs(op));
    switch (op.kind) {
      case OpKind::Linear:
        return linear(id, op);
      case OpKind::Embedding:
        return embedding(id, op);
      case OpKind::MatMul:
        return matmul(op);
      case OpKind::FlashAttention:
        return attention(op);
      case OpKind::View:
      case OpKind::Select:
      case OpKind::Split:
      case OpKind::Copy:
        return move(op);
      case OpKind::LogSoftmax:
        if (is_cut_at_back(input(op))) cuts_.part[index(id)] = RankPart::Scores;
        return elementwise(op, true);
      case OpKind::NllLoss:
        if (is_cut_at_back(input(op))) cuts_.part[index(id)] = RankPart::Loss;
        return;
      case OpKind::LayerNorm:
      case OpKind::RmsNorm:
      case OpKind::Softmax:
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
      case OpKind::DropPath:
      case OpKind::Cast:
      case OpKind::Rope:
      case OpKind::Concat:
      case OpKind::RepeatHeads:
        return elementwise(op, true);
      case OpKind::AllGather:
        return gather(op);
      case OpKind::Opaque:
        if (const auto kind = expert_op(trace_, op)) return expert(id, *kind);
        if (exchanges_heads(trace_, op)) return gather(op);
        if (is_engine_product(trace_, op)) return engine_product(id, op);
        if (is_opaque(trace_, op, padding_of_pairs_operation)) return need_whole(op);
        if (is_opaque(trace_, op, fill_operation) || is_opaque(trace_, op, square_operation))
          return elementwise(op, true);
        if (is_of_each_head(trace_, op)) return elementwise(op, false);
        if (const auto kind = scan_op(trace_, op)) return scan(op, *kind);
        refuse("nobody knows which part of {} a rank would have (take tp=1)", quoted(op.name));
      case OpKind::MsLayerNorm:
      case OpKind::MsRmsNorm:
      case OpKind::ReGelu2:
      case OpKind::ReSilu2:
      case OpKind::Conv2d:
      case OpKind::MeanPool:
      case OpKind::MaxPool:
      case OpKind::Replicate:
      case OpKind::AllReduce:
      case OpKind::ReduceScatter:
      case OpKind::Scatter:
      case OpKind::Receive:
      case OpKind::Send:
      case OpKind::VocabularyLoss:
        return need_whole(op);
    }
  }

  void need_whole(const Op& op) {
    for (const TensorId read : trace_.inputs(op))
      if (cut(read) != whole)
        refuse("{} needs the whole of {}, of which each rank has a part{}", quoted(op.name),
               name_of(read), trace_.step.sequence_parallel ? " (leave --sp out)" : " (take tp=1)");
  }

  void linear(OpId id, const Op& op) {
    const TensorId x = input(op), y = output(op);
    if (own_.is_made[index(y)]) return void(cut(y) = cut(x));
    if (is_cut_at_back(x)) {
      cuts_.part[index(id)] = RankPart::Rows;
      cut_weight(input(op, 1), 1, false);
      return sum(id, y);
    }
    const bool is_head = is_head_[index(id)];
    if (is_further(op) && joins_columns(x)) return gathered(id, op);
    if (op.block < 0 && !is_head) return void(cut(y) = cut(x));
    cuts_.part[index(id)] = RankPart::Columns;
    cut_weight(input(op, 1), 0, is_head);
    if (op.inputs > 2) cut_weight(input(op, 2), 0, is_head);
    cut(y) = back(y);
    cuts_.is_vocabulary[index(y)] = is_head;
  }

  bool is_further(const Op& op) const {
    return op.block >= 0 && trace_.blocks[static_cast<std::size_t>(op.block)].is_further;
  }

  // [batch, tokens, …] of two tensors side by side: what was read, and the word that comes
  // (core/transformer/multi_token_prediction.py).
  bool joins_columns(TensorId x) const {
    const OpId made_by = producer_[index(x)];
    return made_by != no_op && trace_[made_by].kind == OpKind::Concat && shape(x).rank() == 3 &&
           shape(input(trace_[made_by])).back() < shape(x).back();
  }

  void gathered(OpId id, const Op& op) {
    cuts_.part[index(id)] = RankPart::Gathered;
    cut_weight(input(op, 1), 0, false);
    sum(id, output(op));
  }

  void embedding(OpId id, const Op& op) {
    if (table_ == no_op || input(op, 1) != input(trace_[table_], 1)) return;
    cuts_.part[index(id)] = RankPart::Table;
    cut_weight(input(op, 1), 0, true);
    sum(id, output(op));
  }

  // What ranks add up is whole for each, or scattered along the sequence.
  void sum(OpId id, TensorId y, std::int8_t dimension = sequence_dimension) {
    if (is_sequence_cut_from(id)) cut(y) = dimension;
  }

  // Weights have no other readers than what casts them.
  void cut_weight(TensorId weight, std::int8_t dimension, bool is_vocabulary) {
    const bool is_of_expert = cuts_.is_of_expert[index(weight)];
    for (;;) {
      if (cut(weight) != whole && cut(weight) != dimension)
        refuse("{} would be cut by rows and by columns", name_of(weight));
      cut(weight) = dimension;
      cuts_.is_vocabulary[index(weight)] = is_vocabulary;
      cuts_.is_of_expert[index(weight)] = is_of_expert;
      const OpId made_by = producer_[index(weight)];
      if (made_by == no_op) return;
      if (trace_[made_by].kind != OpKind::Cast)
        refuse("{} is made by {}, and ranks cut only stored weights", name_of(weight),
               quoted(trace_[made_by].name));
      weight = input(trace_[made_by]);
    }
  }

  void matmul(const Op& op) {
    const TensorId a = input(op), b = input(op, 1), y = output(op);
    if (cut(a) != cut(b) || cut(a) + 2 >= static_cast<int>(shape(a).rank())) need_whole(op);
    cut(y) = cut(a);
  }

  void attention(const Op& op) {
    for (std::size_t i = 1; i < 3; ++i)
      if (cut(input(op, i)) != cut(input(op))) need_whole(op);
    if (cut(input(op)) != whole && cut(input(op)) != 1) need_whole(op);
    if (op.inputs > 3 && cut(input(op)) != whole && cut(input(op, 3)) == whole &&
        shape(input(op, 3))[1] != 1)
      need_whole(op);
    for (const TensorId written : trace_.outputs(op)) cut(written) = cut(input(op));
  }

  // Context ranks gather tokens of the heads that each tensor-parallel rank has, or exchange them.
  void gather(const Op& op) {
    if (cut(input(op)) != whole && cut(input(op)) != 1) need_whole(op);
    cut(output(op)) = cut(input(op));
  }

  // Counted from the last dimension, where operands are aligned; those of one element spread.
  void elementwise(const Op& op, bool may_cut_back) {
    const TensorId y = output(op);
    std::int64_t from_back = -1;
    for (const TensorId x : trace_.inputs(op)) {
      if (cut(x) == whole) continue;
      const auto here = static_cast<std::int64_t>(shape(x).rank()) - 1 - cut(x);
      if (from_back >= 0 && from_back != here) need_whole(op);
      from_back = here;
      if (cuts_.is_vocabulary[index(x)]) cuts_.is_vocabulary[index(y)] = true;
    }
    if (from_back < 0) return;
    const auto at = static_cast<std::size_t>(from_back);
    if (from_back == 0 && !may_cut_back) need_whole(op);
    for (const TensorId x : trace_.inputs(op))
      if (from_back == 0 && is_bias(op, x)) cut_weight(x, 0, false);
    for (const TensorId x : trace_.inputs(op))
      if (cut(x) == whole && shape(x).rank() > at && shape(x).back(at) != 1 &&
          op.kind != OpKind::Rope && !is_weight(op, x))
        refuse("{} reads the whole of {} beside what each rank has a part of (take tp=1)",
               quoted(op.name), name_of(x));
    for (const TensorId written : trace_.outputs(op)) {
      const Shape& made = shape(written);
      if (made.rank() == shape(y).rank() && made.back(at) == shape(y).back(at))
        cut(written) = static_cast<std::int8_t>(made.rank() - 1 - at);
    }
  }

  // Added to what each rank has some columns of.
  bool is_bias(const Op& op, TensorId x) const {
    return op.kind == OpKind::Add && trace_[x].category == Category::Parameter &&
           shape(x).rank() == 1;
  }

  // Of a norm, along the dimension that is never cut.
  bool is_weight(const Op& op, TensorId x) const {
    return (op.kind == OpKind::LayerNorm || op.kind == OpKind::RmsNorm) && x != input(op);
  }

  void move(const Op& op) {
    const TensorId x = input(op);
    if (cut(x) == whole) return;
    const auto transform = static_cast<LayoutTransform>(
        static_cast<int>(attribute(trace_, op, AttributeKey::LayoutTransform)));
    for (const TensorId y : trace_.outputs(op)) {
      const std::int8_t moved = moved_cut(transform, shape(x), cut(x), shape(y));
      if (moved == whole) need_whole(op);
      cut(y) = own_.is_shared[index(y)] ? whole : moved;
      cuts_.is_vocabulary[index(y)] = cuts_.is_vocabulary[index(x)];
    }
  }

  // Visits of a rank's own tokens are gathered where they are sorted, of experts of which the ranks
  // around it have some columns each; a second sort adds up. Whole experts take them as they are.
  void expert(OpId id, ExpertOp kind) {
    const Op& op = trace_[id];
    const TensorId x = input(op), y = output(op);
    if (kind == ExpertOp::Gate && cut(x) == whole)
      refuse("experts are shared by ranks that have some tokens each (add --sp)");
    if (kind == ExpertOp::PickShares)
      refuse("tokens that are gathered are not cut by ranks yet (take --ep-form all-to-all)");
    if (kind == ExpertOp::Product || kind == ExpertOp::ProductOfEach) return product_of_experts(op);
    if (is_activation(kind)) {
      if (cuts_.is_of_expert[index(x)]) mark_of_expert(trace_.outputs(op));
      return void(cut(y) = cut(x));
    }
    const bool is_cut_up = trace_.step.mesh.ranks_of_expert() > 1;
    if (kind == ExpertOp::Sort && is_part_of_sum_[index(x)]) {
      if (is_cut_up) cuts_.part[index(id)] = RankPart::Rows;
      mark_of_expert(trace_.outputs(op));
      return sum(id, y, row_dimension);
    }
    if (kind == ExpertOp::Sort && cut(x) != whole) {
      if (is_cut_up) cuts_.part[index(id)] = RankPart::Columns;
      return mark_of_expert(trace_.outputs(op));
    }
    keep_rows(op);
  }

  void mark_of_expert(std::span<const TensorId> tensors) {
    for (const TensorId tensor : tensors) cuts_.is_of_expert[index(tensor)] = true;
  }

  void keep_rows(const Op& op) {
    for (const TensorId written : trace_.outputs(op)) cut(written) = cut(input(op));
  }

  // Each rank has some heads, with their groups, of z, x, B, C and dt, and of all that is stored by
  // head or by channel (core/ssm/mamba_mixer.py). What makes A comes before it is known that it is
  // cut.
  void scan(const Op& op, ScanOp kind) {
    if (kind == ScanOp::ScanAndProduct)
      refuse("{} multiplies inside of its scan (take --framework megatron)", quoted(op.name));
    if (kind == ScanOp::Exponential || kind == ScanOp::Negative) return;
    if (!is_cut_at_back(input(op))) return need_whole(op);
    for (const TensorId parameter : trace_.inputs(op).subspan(1)) cut_made_of(parameter);
    for (const TensorId written : trace_.outputs(op)) cut(written) = back(written);
    if (kind == ScanOp::Scan) cut(output(op, 2)) = 1;  // of [batch, heads, width, state]
  }

  void cut_made_of(TensorId parameter) {
    cut(parameter) = 0;
    const OpId made_by = producer_[index(parameter)];
    if (made_by != no_op) cut_made_of(input(trace_[made_by]));
  }

  void product_of_experts(const Op& op) {
    const TensorId x = input(op), y = output(op);
    mark_of_expert(trace_.outputs(op));
    mark_of_expert(trace_.inputs(op).subspan(1));
    if (is_cut_at_back(x)) {
      cut_weight(input(op, 1), 1, false);
      is_part_of_sum_[index(y)] = true;
    } else {
      cut_weight(input(op, 1), 2, false);
      cut(y) = back(y);
    }
  }

  // The weight's codes lie as the weight does; those of x are of what is read.
  void engine_product(OpId id, const Op& op) {
    if (is_product_of_experts(trace_, op))
      product_of_experts(op);
    else
      linear(id, op);
    cut(input(op, 2)) = cut(input(op, 1));
    const RankPart part = cuts_.part[index(id)];
    const bool reads_all = part == RankPart::Columns || part == RankPart::Gathered;
    cut(output(op, 1)) = reads_all ? whole : cut(input(op));
  }

  // All sizes at once, so that the nearest mesh is one that would do. Heads say it best.
  void check_sizes() {
    std::int64_t common = 0;
    TensorId worst = no_tensor;
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (cut(id) == whole || cuts_.is_vocabulary[t]) continue;
      const std::int64_t size = shape(id)[static_cast<std::size_t>(cut(id))];
      common = std::gcd(common, size);
      const bool is_worse =
          worst == no_tensor || (shape(id).rank() == 4 && shape(worst).rank() != 4);
      if (size % cuts_.ranks_of(id, trace_.step.mesh) != 0 && is_worse) worst = id;
    }
    if (worst == no_tensor) return;
    Mesh nearest = trace_.step.mesh;
    const std::int64_t both = nearest[Axis::Data] * ranks_;  // as many GPUs
    nearest[Axis::Tensor] = nearest_divisor(std::gcd(common, both), ranks_);
    nearest[Axis::Data] = both / nearest[Axis::Tensor];
    if (nearest.expert_tensor > 0) nearest = with_ranks_of_expert(nearest, nearest.expert_tensor);
    nearest.experts = std::gcd(nearest.experts, nearest.expert_ranks());
    refuse<IndivisibleError>("{} has {} {}, which {} ranks cannot share (nearest: --mesh {})",
                             name_of(worst), shape(worst)[static_cast<std::size_t>(cut(worst))],
                             counted_in(worst), ranks_, to_text(nearest));
  }

  std::string_view counted_in(TensorId tensor) {
    if (shape(tensor).rank() == 4 && cut(tensor) == 1) return "heads";
    if (shape(tensor).rank() == 3 && cut(tensor) == sequence_dimension) return "tokens";
    return cut(tensor) == 0 ? "rows" : "columns";
  }

  const Trace& trace_;
  const std::int64_t ranks_;
  std::vector<OpId> producer_;        ///< by tensor
  std::vector<bool> is_part_of_sum_;  ///< by tensor: of products of experts
  const OwnProducts own_;
  OpId table_ = no_op;
  std::vector<bool> is_head_;  ///< by op
  TensorCuts cuts_;
};

}  // namespace

TensorCuts TensorCuts::none(const Trace& trace) {
  const std::vector<bool> no_tensors(trace.tensors.size());
  return {.dimension = std::vector<std::int8_t>(trace.tensors.size(), whole),
          .is_vocabulary = no_tensors,
          .is_of_expert = no_tensors,
          .is_shared = no_tensors,
          .part = std::vector<RankPart>(trace.ops.size(), RankPart::Alike),
          .scatters = {}};
}

TensorCuts find_cuts(const Trace& trace) { return CutSearch(trace).run(); }

std::int64_t words_per_rank(std::int64_t words, std::int64_t ranks) {
  constexpr std::int64_t multiple = 128;  // make_vocab_size_divisible_by
  const std::int64_t all = multiple * ranks;
  return ceil_div(words, all) * multiple;
}

}  // namespace tidemark
