// A value is an edge from its call's `in` to its `out`, as dear as it is large: dearer the farther
// from the backward, and twice as dear where fusion spares its way through memory. A call that must
// not run again hangs on the source, what the backward reads on the sink; so does a call itself
// that has to.
#include "simulator/compiled/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "simulator/planner/min_cut.h"

namespace tidemark {
namespace {

// The partitioner's own numbers; they have no other source.
constexpr double farther_is_dearer = 1.1;
constexpr int farthest = 100;
constexpr std::int64_t fused_is_dearer = 2;
constexpr std::int64_t reduces = 4;         // times smaller than what is read: kept
constexpr std::size_t longest_chain = 100;  // calls between ends of one fusion

bool is_fusible(const FxNode& call) {
  return call.kind == FxKind::View || call.kind == FxKind::Pointwise || call.kind == FxKind::Pair ||
         call.kind == FxKind::Element;
}

class Partitioner {
 public:
  explicit Partitioner(const FxGraph& graph, const std::vector<bool>* kept = nullptr)
      : graph_(graph),
        kept_(kept),
        users_(graph.calls.size()),
        is_read_(graph.calls.size()),
        is_read_by_kernel_(graph.calls.size()),
        is_returned_(graph.calls.size()),
        order_(graph.calls.size()),
        distance_(graph.calls.size(), std::numeric_limits<int>::max() - 1),
        may_not_repeat_(graph.calls.size()) {
    std::size_t forward = 0;
    for (std::size_t i = 0; i < graph.calls.size(); ++i) {
      for (const FxId read : graph.calls[i].reads) users_[index(read)].push_back(i);
      if (is_forward(i)) order_[i] = forward++;
    }
    for (const BackwardRead& read : graph.backward)
      (read.by_kernel ? is_read_by_kernel_ : is_read_)[index(read.value)] = true;
    for (const FxId value : graph.returned) is_returned_[index(value)] = true;
    measure_distances();
  }

  std::vector<FxId> run() && {
    for (std::size_t i = 0; i < calls().size(); ++i)
      if (kind(i) == FxKind::Input || (is_forward(i) && is_dear_to_repeat(i))) forbid(i);
    forbid_uses_far_apart();
    forbid_long_chains();
    return read_later(cut());
  }

 private:
  const std::vector<FxNode>& calls() const { return graph_.calls; }
  FxKind kind(std::size_t i) const { return calls()[i].kind; }
  bool is_forward(std::size_t i) const { return !calls()[i].in_backward; }
  bool reads_backward(std::size_t i) const { return is_read_[i] || is_read_by_kernel_[i]; }

  bool fuses(std::size_t from, std::size_t to) const {
    return kind(to) == FxKind::Concat || (is_fusible(calls()[from]) && is_fusible(calls()[to]));
  }

  void measure_distances() {
    for (std::size_t i = calls().size(); i-- > 0;) {
      if (!is_forward(i)) distance_[i] = 0;
      if (is_forward(i) && reads_backward(i)) distance_[i] = 1;
      for (const std::size_t user : users_[i])
        if (is_forward(i)) distance_[i] = std::min(distance_[i], distance_[user] + 1);
    }
  }

  void forbid(std::size_t i) {
    if (kind(i) != FxKind::View && !must_repeat(i)) may_not_repeat_[i] = true;
  }

  bool must_repeat(std::size_t i) const {
    if (!kept_ || !is_forward(i)) return false;
    switch (kind(i)) {
      case FxKind::Input:
      case FxKind::Element:  // no call of the dispatcher
        return false;
      case FxKind::Concat:
        return calls()[i].is_pad;
      case FxKind::Kernel:
      case FxKind::KernelSet:
        return !(*kept_)[index(calls()[i].op)];
      case FxKind::View:
      case FxKind::Pointwise:
      case FxKind::Pair:
        return true;
    }
    return true;
  }

  bool is_dear_to_repeat(std::size_t i) const {
    if (kind(i) == FxKind::Element || kind(i) == FxKind::View) return false;
    if (!is_fusible(calls()[i])) return true;
    if (lies_in_memory_in_backward(i)) return true;
    std::int64_t read = 0;
    for (const FxId operand : calls()[i].reads) read += size(graph_[operand]).count;
    return made(i) * reduces < read;
  }

  // Bytes, of a tuple all of its tensors'.
  std::int64_t made(std::size_t i) const {
    if (kind(i) != FxKind::Pair) return size(calls()[i]).count;
    std::int64_t all = 0;
    for (const std::size_t user : users_[i]) all += size(calls()[user]).count;
    return all;
  }

  // Made again it would be written there all the same, for a kernel of a library. What the model
  // returns is taken for that, too: the graph's end is neither forward nor fusible.
  bool lies_in_memory_in_backward(std::size_t i) const {
    std::vector<std::size_t> seen = {i};
    for (std::size_t k = 0; k < seen.size(); ++k) {
      const std::size_t value = seen[k];
      if (is_read_by_kernel_[value] || is_returned_[value]) return true;
      for (const std::size_t user : users_[value]) {
        if (!is_forward(user) && !fuses(value, user)) return true;
        if (kind(user) == FxKind::View) seen.push_back(user);
      }
    }
    return false;
  }

  // What reads a value behind a kernel that cannot be fused is not made again together with what
  // reads it before.
  void forbid_uses_far_apart() {
    for (std::size_t i = 0; i < calls().size(); ++i) {
      if (!is_forward(i)) continue;
      std::size_t last = 0;
      bool is_used = false;
      for (const std::size_t user : users_[i])
        if (is_forward(user)) last = std::max(last, order_[user]), is_used = true;
      if (!is_used) continue;
      const std::size_t apart = first_unfused(i, last);
      for (const std::size_t user : users_[i])
        if (is_forward(user) && order_[user] > apart && fuses(i, user)) forbid(user);
    }
  }

  // Of the forward, in order, behind the users of the value up to the last of them.
  std::size_t first_unfused(std::size_t value, std::size_t last) const {
    struct Step {
      std::size_t call;
      bool is_fused;
    };
    const auto later = [&](const Step& a, const Step& b) {
      return order_[a.call] > order_[b.call];
    };
    std::priority_queue<Step, std::vector<Step>, decltype(later)> next(later);
    for (const std::size_t user : users_[value])
      if (is_forward(user)) next.push({user, true});
    while (!next.empty()) {
      const Step step = next.top();
      next.pop();
      if (!step.is_fused) return order_[step.call];
      for (const std::size_t user : users_[step.call])
        if (is_forward(user) && order_[user] <= last) next.push({user, fuses(step.call, user)});
    }
    return last;
  }

  void forbid_long_chains() {
    const auto later = [&](std::size_t a, std::size_t b) { return order_[a] > order_[b]; };
    std::vector<bool> seen(calls().size());
    for (std::size_t start = 0; start < calls().size(); ++start) {
      if (!is_forward(start)) continue;
      std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
      next.push(start);
      while (!next.empty()) {
        const std::size_t call = next.top();
        next.pop();
        if (seen[call]) continue;
        seen[call] = true;
        if (order_[call] > order_[start] + longest_chain && next.empty()) {
          forbid(call);
          break;
        }
        for (const std::size_t user : users_[call])
          if (is_forward(user) && fuses(call, user) && !may_not_repeat_[user]) next.push(user);
      }
    }
  }

  bool lies_in_memory(std::size_t i) const {
    if (kind(i) == FxKind::Input || is_read_by_kernel_[i] || is_returned_[i]) return true;
    if (is_read_[i] && !is_fusible(calls()[i])) return true;
    return !std::ranges::all_of(users_[i], [&](std::size_t user) { return fuses(i, user); });
  }

  std::int64_t price(std::size_t i) const {
    if (kind(i) == FxKind::Pair || kind(i) == FxKind::KernelSet) return MinCut::infinite;
    const double distance = std::clamp(distance_[i], 1, farthest);
    const auto bytes = static_cast<std::int64_t>(static_cast<double>(size(calls()[i]).count) *
                                                 std::pow(farther_is_dearer, distance));
    return lies_in_memory(i) ? bytes : bytes * fused_is_dearer;
  }

  // Prices of a large step are made smaller together, until their sum is a finite flow.
  int shift_of(const std::vector<std::int64_t>& prices) const {
    double sum = 0;
    for (const std::int64_t price : prices)
      if (price < MinCut::infinite) sum += static_cast<double>(price);
    int shift = 0;
    while (std::ldexp(sum, -shift) > static_cast<double>(MinCut::infinite / 2)) ++shift;
    return shift;
  }

  // Of cuts of one price the partitioner takes the one closest to the backward, MinCut the one
  // closest to its source. So the edges run backward here.
  std::vector<FxId> cut() const {
    std::vector<std::int64_t> prices;
    for (std::size_t i = 0; i < calls().size(); ++i) prices.push_back(price(i));
    const int shift = shift_of(prices);
    MinCut flow;
    std::vector<MinCut::Node> in, out;
    for (std::size_t i = 0; i < calls().size(); ++i) {
      in.push_back(flow.add_node());
      out.push_back(flow.add_node());
    }
    for (std::size_t i = 0; i < calls().size(); ++i) {
      flow.add_edge(out[i], in[i], prices[i] < MinCut::infinite ? prices[i] >> shift : prices[i]);
      for (const FxId read : calls()[i].reads)
        flow.add_edge(in[i], out[index(read)], MinCut::infinite);
      if (may_not_repeat_[i]) flow.add_edge(in[i], MinCut::sink, MinCut::infinite);
      if (must_repeat(i)) flow.add_edge(MinCut::source, in[i], MinCut::infinite);
      if (reads_backward(i)) flow.add_edge(MinCut::source, out[i], MinCut::infinite);
    }
    flow.solve();
    std::vector<FxId> saved;
    for (std::size_t i = 0; i < calls().size(); ++i)
      if (flow.is_sink_side(in[i]) && !flow.is_sink_side(out[i]))
        saved.push_back(static_cast<FxId>(i));
    return saved;
  }

  // Without what is kept for calls that have to run again, and of which the backward reads nothing.
  std::vector<FxId> read_later(std::vector<FxId> saved) const {
    std::vector<bool> is_saved(calls().size()), is_needed(calls().size());
    for (const FxId value : saved) is_saved[index(value)] = true;
    for (std::size_t i = calls().size(); i-- > 0;) {
      is_needed[i] = is_needed[i] || reads_backward(i);
      if (!is_needed[i] || is_saved[i]) continue;
      for (const FxId read : calls()[i].reads) is_needed[index(read)] = true;
    }
    std::erase_if(saved, [&](FxId value) { return !is_needed[index(value)]; });
    return saved;
  }

  const FxGraph& graph_;
  const std::vector<bool>* kept_;  ///< by op, of a policy
  std::vector<std::vector<std::size_t>> users_;
  std::vector<bool> is_read_, is_read_by_kernel_, is_returned_;
  std::vector<std::size_t> order_;
  std::vector<int> distance_;
  std::vector<bool> may_not_repeat_;
};

}  // namespace

std::vector<FxId> saved_values(const FxGraph& graph) { return Partitioner(graph).run(); }

std::vector<FxId> saved_values(const FxGraph& graph, const std::vector<bool>& kept) {
  return Partitioner(graph, &kept).run();
}

}  // namespace tidemark
