// Found backwards, from what reads them; answers of experts forwards.
#include "simulator/parallel/own_products.h"

#include <algorithm>
#include <ranges>

#include "traces/engine_linear.h"
#include "traces/expert_ops.h"

namespace tidemark {
namespace {

class OwnSearch {
 public:
  explicit OwnSearch(const Trace& trace)
      : trace_(trace),
        is_visited_(trace.tensors.size()),
        is_answer_(trace.tensors.size()),
        is_summed_(trace.tensors.size()),
        widened_in_(trace.tensors.size(), no_block) {
    own_.is_made.assign(trace.tensors.size(), false);
    own_.is_shared.assign(trace.tensors.size(), false);
  }

  OwnProducts run() && {
    for (const Op& op : trace_.ops | std::views::reverse)
      if (op.inputs > 0) find_before(op);
    for (const Op& op : trace_.ops)
      if (op.inputs > 0) find_behind(op);
    return std::move(own_);
  }

 private:
  static constexpr std::int32_t no_block = -1;

  bool is_product(const Op& op) const {
    return op.kind == OpKind::Linear ||
           (is_engine_product(trace_, op) && !is_product_of_experts(trace_, op));
  }

  // Does a product of the op's block read the tensor, or its norm, and no sum? What blocks add to
  // is as wide as they are.
  bool is_widened(const Op& op, TensorId tensor) const {
    return op.block != no_block && widened_in_[index(tensor)] == op.block &&
           !is_summed_[index(tensor)];
  }

  void find_before(const Op& op) {
    const TensorId x = trace_.inputs(op)[0], y = trace_.outputs(op)[0];
    if (expert_op(trace_, op) == ExpertOp::Permute) is_visited_[index(x)] = true;
    if (op.kind == OpKind::View && is_visited_[index(y)]) is_visited_[index(x)] = true;
    if (op.kind == OpKind::Add)
      for (const TensorId input : trace_.inputs(op)) is_summed_[index(input)] = true;
    const auto is_one = [&](TensorId output) { return is_widened(op, output); };
    const bool hands_on = op.kind == OpKind::View || op.kind == OpKind::Split ||
                          op.kind == OpKind::LayerNorm || op.kind == OpKind::RmsNorm;
    if (is_product(op)) {
      own_.is_made[index(y)] = is_visited_[index(y)] || is_one(y);
      widened_in_[index(x)] = op.block;
    } else if (hands_on && std::ranges::any_of(trace_.outputs(op), is_one)) {
      widened_in_[index(x)] = op.block;
    }
  }

  void find_behind(const Op& op) {
    const TensorId x = trace_.inputs(op)[0], y = trace_.outputs(op)[0];
    if (expert_op(trace_, op) == ExpertOp::Unpermute) is_answer_[index(y)] = true;
    if (op.kind == OpKind::View) is_answer_[index(y)] = is_answer_[index(x)];
    if (is_product(op) && is_answer_[index(x)]) own_.is_made[index(y)] = true;
    if (op.kind != OpKind::Split || !own_.is_made[index(x)] || !is_widened(op, x)) return;
    for (const TensorId part : trace_.outputs(op))
      own_.is_shared[index(part)] = !is_widened(op, part);
  }

  const Trace& trace_;
  std::vector<bool> is_visited_, is_answer_;  ///< by tensor: as experts read and write tokens
  std::vector<bool> is_summed_;               ///< by tensor
  std::vector<std::int32_t> widened_in_;      ///< by tensor: the block whose product reads it
  OwnProducts own_;
};

}  // namespace

OwnProducts own_products(const Trace& trace) { return OwnSearch(trace).run(); }

}  // namespace tidemark
