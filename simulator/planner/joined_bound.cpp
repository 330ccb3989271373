// The Lagrangian of lower_bound.cpp where neighbouring blocks may be recovered as one: the cheapest
// way through the chain, by single stages and joined ones, at each price of a byte.
#include <algorithm>
#include <set>

#include "simulator/planner/planner.h"

namespace tidemark {
namespace {

// Any set of prices gives a valid bound: so many, evenly taken, of those at which plans change.
constexpr std::size_t most_prices = 24;
constexpr double unlimited = 1e300;

std::vector<double> thinned(const std::set<double>& prices) {
  const std::vector<double> all(prices.begin(), prices.end());
  if (all.size() <= most_prices) return all;
  std::vector<double> left;
  for (std::size_t i = 0; i < most_prices; ++i)
    left.push_back(all[i * (all.size() - 1) / (most_prices - 1)]);
  return left;
}

// What a joined or single stage costs at least: time and priced bytes.
class LeastCost {
 public:
  LeastCost(const Trace& trace, const Needs& needs, const std::vector<std::int64_t>& forward_ns,
            const std::vector<std::vector<Coded>>* coded, const Stages& chain)
      : trace_(trace), needs_(needs), forward_ns_(forward_ns), coded_(coded), chain_(chain) {}

  void set_price(double price) {
    price_ = price;
    least_.assign(chain_.kinds.size(), unknown);
  }

  /// `kept`: bytes of the stage when it keeps everything.
  double of(std::uint32_t kind, std::int64_t kept) {
    if (least_[kind] == unknown) least_[kind] = solve(chain_.all[chain_.kinds[kind].front()]);
    return least_[kind] + price_ * static_cast<double>(kept);
  }

 private:
  static constexpr double unknown = -1e300;

  // Beyond what keeping everything costs.
  double solve(const Stage& stage) const {
    if (stage.decided.empty()) return 0;
    const Proposal found =
        cheapest_at({trace_, needs_, stage, forward_ns_, Held::Free, coded_}, price_);
    const std::int64_t all = decided_bytes(trace_, stage);
    return static_cast<double>(found.time) - price_ * static_cast<double>(all - found.kept);
  }

  const Trace& trace_;
  const Needs& needs_;
  const std::vector<std::int64_t>& forward_ns_;
  const std::vector<std::vector<Coded>>* coded_;
  const Stages& chain_;
  double price_ = 0;
  std::vector<double> least_;
};

}  // namespace

// A moment at which a joined stage is under way knows only what stands before that: of it, nothing
// but the least time, as of all that stands behind the moment.
std::int64_t Planner::lower_bound_of_joined(std::int64_t bytes, double link) const {
  std::set<double> prices = {0};
  for (const std::vector<Proposal>& hull : free_)
    for (const double price : prices_of(hull)) prices.insert(price);
  std::vector<LeastCost> costs = {{*trace_, needs_, forward_ns_, coded_forms(), stages_}};
  for (const JoinedStages& joined : joined_)
    costs.emplace_back(*trace_, needs_, forward_ns_, coded_forms(), joined.chain);
  const std::vector<double> forward = forward_room(bytes, link), backward = backward_room(bytes);
  const std::size_t count = stages_.all.size();
  // Calls visit(end, least cost) for all that may begin with stage s.
  const auto for_each = [&](std::size_t s, const auto& visit) {
    std::int64_t kept = reference_.stages[s].first.kept;
    visit(s + 1, costs[0].of(stages_.all[s].kind, kept));
    std::size_t end = s + 1;
    for (std::size_t c = 0; c < joined_.size(); ++c) {
      const Stage& stage = joined_[c].beginning[s];
      if (stage.begin == stage.end) continue;
      for (; end < s + joined_[c].length; ++end) kept += reference_.stages[end].first.kept;
      visit(end, costs[c + 1].of(stage.kind, kept));
    }
  };
  std::vector<double> behind(count + 1), fastest(count);  // at no price; of what begins with s
  for (LeastCost& each : costs) each.set_price(0);
  for (std::size_t s = count; s-- > 0;) {
    behind[s] = unlimited;
    for_each(s, [&](std::size_t end, double cost) {
      behind[s] = std::min(behind[s], cost + behind[end]);
      fastest[s] = std::min(fastest[s], cost);
    });
  }
  double most = 0;
  for (const double price : thinned(prices)) {
    for (LeastCost& each : costs) each.set_price(price);
    std::vector<double> before(count + 1, unlimited), under_way = before;
    before[0] = 0;
    for (std::size_t s = 0; s <= count; ++s) {
      const double time = kept_time() + std::min(before[s], under_way[s]) + behind[s];
      if (price * link <= 1) most = std::max(most, time - price * forward[s]);
      most = std::max(most, (time - price * backward[s]) / (1 + price * link));
      if (s == count) break;
      for_each(s, [&](std::size_t end, double cost) {
        before[end] = std::min(before[end], before[s] + cost);
        for (std::size_t i = s + 1; i < end; ++i)
          under_way[i] = std::min(under_way[i], before[s] + fastest[s]);
      });
    }
  }
  return std::max(static_cast<std::int64_t>(most), reference_.launches);
}

}  // namespace tidemark
