// Source side: runs once. Sink side: runs again. Edges that a division cuts are what it pays:
//   source → op, its time                 the op runs again
//   op → sink, price · bytes              its output is kept for gradients
//   maker → value, price · bytes          kept, because a rerun reads what its maker does not make
//   value → reader, infinite              of a value that no gradient needs
#include "simulator/planner/proposals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "simulator/planner/min_cut.h"
#include "simulator/planner/survey.h"

namespace tidemark {
namespace {

// Capacities count 1/1024 ns, so that prices far below one per byte are not lost.
constexpr double scale = 1024;
constexpr std::int64_t dear = std::int64_t{1} << 48;  // beyond any stage's time

enum class Forced : std::uint8_t { No, Kept, Absent };
struct Exception {
  std::size_t decided = std::numeric_limits<std::size_t>::max();
  Forced forced = Forced::No;
};

std::int64_t priced(double price, std::int64_t bytes) {
  return static_cast<std::int64_t>(
      std::min(price * static_cast<double>(bytes) * scale, static_cast<double>(dear)));
}

class Cutting {
 public:
  explicit Cutting(const ProposalInput& in)
      : in_(in), begin_(index(in.stage.begin)), count_(index(in.stage.end) - begin_) {
    decided_of_.assign(in.trace.tensors.size(), none);
    for (std::uint32_t d = 0; d < in.stage.decided.size(); ++d)
      decided_of_[index(in.stage.decided[d])] = d;
  }

  Proposal solve(double price, const Exception& exception = {}) {
    MinCut cut;
    nodes_.clear();
    values_.clear();
    for (std::size_t i = 0; i < count_; ++i) nodes_.push_back(cut.add_node());
    for (std::size_t i = 0; i < count_; ++i) add_op(cut, i, price, exception);
    cut.solve();
    reruns_.assign(count_, false);
    for (std::size_t i = 0; i < count_; ++i) reruns_[i] = cut.is_sink_side(nodes_[i]);
    return proposal();
  }

  /// Above it, whatever can be made again is.
  double highest_price() const {
    double time = 1;
    for (std::size_t i = 0; i < count_; ++i)
      time += static_cast<double>(in_.forward_ns[begin_ + i]);
    return time / 512;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  const Op& op_at(std::size_t i) const { return in_.trace.ops[begin_ + i]; }
  bool may_run_again(std::size_t i) const {
    return !in_.needs.runs_once[begin_ + i] && !is_view(op_at(i).kind);
  }

  Forced forced_of(std::size_t d) const {
    if (!in_.stage.held[d] || in_.held == Held::Free) return Forced::No;
    return in_.held == Held::Kept ? Forced::Kept : Forced::Absent;
  }

  void add_op(MinCut& cut, std::size_t i, double price, const Exception& exception) {
    const std::int64_t time = in_.forward_ns[begin_ + i] * static_cast<std::int64_t>(scale);
    // One more than its time: of two plans of equal price, the one that runs less.
    cut.add_edge(MinCut::source, nodes_[i], may_run_again(i) ? time + 1 : MinCut::infinite / 4);
    for (const TensorId output : in_.trace.outputs(op_at(i))) {
      const std::uint32_t d = decided_of_[index(output)];
      if (d == none) continue;
      const Forced forced = exception.decided == d ? exception.forced : forced_of(d);
      const std::int64_t weight = priced(price, rounded(size(in_.trace[output])));
      if (forced == Forced::Kept)
        cut.add_edge(MinCut::source, nodes_[i], dear);
      else
        cut.add_edge(nodes_[i], MinCut::sink, forced == Forced::Absent ? dear : weight);
    }
    if (!may_run_again(i)) return;
    for (const TensorId input : in_.trace.inputs(op_at(i)))
      add_read(cut, i, in_.trace[input].storage, price);
  }

  void add_read(MinCut& cut, std::size_t reader, TensorId storage, double price) {
    if (!is_charged(storage)) return;
    const auto [found, is_new] = values_.try_emplace(storage, MinCut::source);
    if (is_new) {
      found->second = cut.add_node();
      const std::int64_t weight = priced(price, rounded(size(in_.trace[storage])));
      cut.add_edge(is_inside(storage) ? nodes_[offset(storage)] : MinCut::source, found->second,
                   weight);
    }
    cut.add_edge(found->second, nodes_[reader], MinCut::infinite / 4);
  }

  // There only for reruns: no gradient needs it, and nobody behind the stage could have it kept.
  bool is_charged(TensorId storage) const {
    const std::size_t s = index(storage);
    const OpId last = in_.needs.last_read[s];
    return in_.needs.producer[s] != no_op && in_.needs.uses[s] == 0 && last != no_op &&
           index(last) >= begin_ && index(last) < begin_ + count_;
  }
  bool is_inside(TensorId storage) const {
    const OpId producer = in_.needs.producer[index(storage)];
    return producer != no_op && index(producer) >= begin_ && index(producer) < begin_ + count_;
  }
  std::size_t offset(TensorId storage) const {
    return index(in_.needs.producer[index(storage)]) - begin_;
  }

  Proposal proposal() {
    Proposal made{keep_all(in_.stage), 0, 0};
    for (std::size_t i = 0; i < count_; ++i)
      if (reruns_[i]) made.time += in_.forward_ns[begin_ + i];
    for (std::size_t d = 0; d < in_.stage.decided.size(); ++d) {
      const TensorId storage = in_.stage.decided[d];
      if (reruns_[offset(storage)])
        made.plan.forms[d].action = Action::Recompute;
      else
        made.kept += rounded(size(in_.trace[storage]));
    }
    for (const auto& [storage, node] : values_)
      if (is_read_again(storage) && !(is_inside(storage) && reruns_[offset(storage)]))
        made.kept += rounded(size(in_.trace[storage]));
    made.plan.regions = regions();
    return made;
  }

  bool is_read_again(TensorId storage) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!reruns_[i]) continue;
      for (const TensorId input : in_.trace.inputs(op_at(i)))
        if (in_.trace[input].storage == storage) return true;
    }
    return false;
  }

  // The smallest that hold what runs again and all who read it: what is recovered late is there for
  // a short time.
  std::vector<LocalRegion> regions() const {
    std::vector<LocalRegion> found;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!reruns_[i]) continue;
      const std::size_t end = last_use(i) + 1;
      if (!found.empty() && i < found.back().end)
        found.back().end = std::max(found.back().end, end);
      else
        found.push_back({i, end});
    }
    return found;
  }

  // Of what the op makes again: by gradients, or by ops that run again.
  std::size_t last_use(std::size_t i) const {
    std::size_t last = i;
    for (const TensorId output : in_.trace.outputs(op_at(i))) {
      const TensorId storage = in_.trace[output].storage;
      if (decided_of_[index(storage)] != none) {
        last = std::max(last, index(last_forward_use(in_.needs, storage)) - begin_);
        continue;
      }
      for (std::size_t reader = i + 1; reader < count_; ++reader)
        if (reruns_[reader])
          for (const TensorId input : in_.trace.inputs(op_at(reader)))
            if (in_.trace[input].storage == storage) last = std::max(last, reader);
    }
    return last;
  }

  const ProposalInput& in_;
  std::size_t begin_, count_;
  std::vector<std::uint32_t> decided_of_;  ///< by tensor
  std::vector<MinCut::Node> nodes_;        ///< by op of the stage
  std::unordered_map<TensorId, MinCut::Node> values_;
  std::vector<bool> reruns_;
};

double price_between(const Proposal& more, const Proposal& less) {
  return static_cast<double>(less.time - more.time) / static_cast<double>(more.kept - less.kept);
}

// Corners between two: the plan that is cheapest at the price at which those cost the same.
void refine(Cutting& cutting, const Proposal& more, const Proposal& less,
            std::vector<Proposal>& hull) {
  if (more.kept <= less.kept || more.time >= less.time) return;
  const double price = price_between(more, less);
  const auto cost = [&](const Proposal& p) {
    return static_cast<double>(p.time) + price * static_cast<double>(p.kept);
  };
  Proposal between = cutting.solve(price);
  if (cost(between) >= cost(more) - 1e-3 * (1 + std::abs(cost(more) - cost(less)))) return;
  if (between.kept >= more.kept || between.kept <= less.kept) return;
  refine(cutting, more, between, hull);
  hull.push_back(between);
  refine(cutting, between, less, hull);
}

// What no other proposal beats in both terms; those that keep most first.
std::vector<Proposal> undominated(std::vector<Proposal> proposals) {
  std::ranges::stable_sort(proposals, [](const Proposal& a, const Proposal& b) {
    return a.kept != b.kept ? a.kept < b.kept : a.time < b.time;
  });
  std::vector<Proposal> left;
  for (Proposal& proposal : proposals)
    if (left.empty() || proposal.time < left.back().time) left.push_back(std::move(proposal));
  std::ranges::reverse(left);
  return left;
}

}  // namespace

std::vector<Proposal> hull_of(const ProposalInput& input) {
  Cutting cutting(input);
  const Proposal all = cutting.solve(0);
  const Proposal least = cutting.solve(cutting.highest_price());
  std::vector<Proposal> hull = {all};
  refine(cutting, all, least, hull);
  if (least.kept < all.kept) hull.push_back(least);
  return hull;
}

std::vector<Proposal> neighbours_of(const ProposalInput& input, const std::vector<Proposal>& hull) {
  Cutting cutting(input);
  std::vector<Proposal> found;
  for (std::size_t corner = 0; corner + 1 < hull.size(); ++corner) {
    const double price = price_between(hull[corner], hull[corner + 1]);
    for (std::size_t d = 0; d < input.stage.decided.size(); ++d) {
      if (input.stage.held[d] && input.held != Held::Free) continue;
      const bool is_kept = hull[corner].plan.forms[d].action == Action::Keep;
      found.push_back(cutting.solve(price, {d, is_kept ? Forced::Absent : Forced::Kept}));
    }
  }
  return undominated(std::move(found));
}

}  // namespace tidemark
