// One comparison per op. A search among all kinds of ops would find more, and take longer than what
// it saves.
#include "simulator/cost/alike_ops.h"

#include <algorithm>

namespace tidemark {
namespace {

class Search {
 public:
  Search(const Trace& trace, const Needs& needs, const Traffic& traffic)
      : trace_(trace), needs_(needs), traffic_(traffic) {
    alike_.group.reserve(trace.ops.size());
  }

  AlikeOps run() && {
    for (std::size_t b = 1; b < trace_.blocks.size(); ++b) {
      add_alone(index(trace_.blocks[b].begin));
      add_like(trace_.blocks[b - 1], trace_.blocks[b]);
    }
    add_alone(trace_.ops.size());
    return std::move(alike_);
  }

 private:
  void add_alone(std::size_t end) {
    while (alike_.group.size() < end) add(static_cast<std::uint32_t>(alike_.first.size()));
  }

  void add_like(const Block& before, const Block& block) {
    for (std::size_t like = index(before.begin); like < index(before.end); ++like) {
      const std::size_t op = alike_.group.size();
      if (op >= index(block.end)) return;
      const bool is_alike = are_alike(static_cast<OpId>(like), static_cast<OpId>(op));
      add(is_alike ? alike_.group[like] : static_cast<std::uint32_t>(alike_.first.size()));
    }
  }

  void add(std::uint32_t group) {
    if (group == alike_.first.size()) alike_.first.push_back(OpId(alike_.group.size()));
    alike_.group.push_back(group);
  }

  bool are_alike(OpId a, OpId b) const {
    const Op &x = trace_[a], &y = trace_[b];
    return x.kind == y.kind && x.kind != OpKind::Opaque && x.inputs == y.inputs &&
           x.outputs == y.outputs && needs_.gradients[index(a)] == needs_.gradients[index(b)] &&
           needs_.handed_on[index(a)] == needs_.handed_on[index(b)] &&
           needs_.saved[index(a)] == needs_.saved[index(b)] &&
           traffic_.makes_gradients(Task::WeightGradient, a) ==
               traffic_.makes_gradients(Task::WeightGradient, b) &&
           std::ranges::equal(trace_.attributes_of(x), trace_.attributes_of(y)) &&
           have_equal_operands(x, y);
  }

  bool have_equal_operands(const Op& x, const Op& y) const {
    const auto is_equal = [&](TensorId a, TensorId b) {
      return trace_[a].dtype == trace_[b].dtype && trace_[a].shape == trace_[b].shape &&
             traffic_.has_gradient(a) == traffic_.has_gradient(b) &&
             trace_[a].category == trace_[b].category;
    };
    return std::ranges::equal(trace_.inputs(x), trace_.inputs(y), is_equal) &&
           std::ranges::equal(trace_.outputs(x), trace_.outputs(y), is_equal);
  }

  const Trace& trace_;
  const Needs& needs_;
  const Traffic& traffic_;
  AlikeOps alike_;
};

}  // namespace

AlikeOps find_alike_ops(const Trace& trace, const Needs& needs, const Traffic& traffic) {
  return Search(trace, needs, traffic).run();
}

}  // namespace tidemark
