// The Lagrangian of lower_bound.cpp where neighbouring blocks may be recovered as one: the cheapest
// way through the chain, by single stages and joined ones, at each price of a byte.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "simulator/planner/cutting.h"
#include "simulator/planner/planner.h"
#include "simulator/planner/prices.h"
#include "simulator/planner/under_way.h"

namespace tidemark {
namespace {

constexpr double unlimited = 1e300;

// Any prices give a valid bound, and at each moment it is concave in them: so many of those at
// which plans change, evenly taken, and then what lies between the best and its neighbours.
constexpr std::size_t coarse_prices = 10;
constexpr int steps_of_prices = 8;

// `prices` rise.
template <typename Bound>
double best_at_prices(const std::vector<double>& prices, const Bound& bound) {
  const std::size_t count = std::min(coarse_prices, prices.size());
  const auto coarse = [&](std::size_t i) {
    return prices[count == 1 ? 0 : i * (prices.size() - 1) / (count - 1)];
  };
  double most = 0, best = 0, below = 0, above = 0;
  const auto is_better = [&](double price) {
    const double found = bound(price);
    if (found <= most) return false;
    most = found, best = price;
    return true;
  };
  for (std::size_t i = 0; i < count; ++i)
    if (is_better(coarse(i)))
      below = coarse(i > 0 ? i - 1 : 0), above = coarse(std::min(i + 1, count - 1));
  for (int i = 0; i < steps_of_prices; ++i) {
    const double middle = best;
    const double lower = (below + middle) / 2, higher = (middle + above) / 2;
    if (lower < middle && is_better(lower)) {
      above = middle;
    } else if (higher > middle && is_better(higher)) {
      below = middle;
    } else {
      below = lower, above = higher;
    }
  }
  return most;
}

}  // namespace

// What may begin with each stage, with each set of operators, and what it costs at least.
class Planner::LeastCosts {
  /// Of stages that keep everything.
  struct Kept {
    std::int64_t bytes = 0;
    std::int64_t time = 0;  ///< ns beyond those of the trace as it is
  };

  // What a joined or single stage of a chain costs at least: time and priced bytes.
  class LeastCost {
   public:
    LeastCost(const Trace& trace, const Needs& needs, const std::vector<std::int64_t>& forward_ns,
              Held held, const std::vector<std::vector<Coded>>* coded, const Stages& chain,
              const std::vector<std::vector<Proposal>>* undoing)
        : trace_(trace),
          needs_(needs),
          forward_ns_(forward_ns),
          held_(held),
          coded_(coded),
          chain_(chain),
          undoing_(undoing),
          cuttings_(chain.kinds.size()) {}

    void set_price(double price) {
      price_ = price;
      least_.assign(chain_.kinds.size(), unknown);
    }

    /// `kept`: bytes of the stage when it keeps everything; its time then.
    double of(std::uint32_t kind, const Kept& kept) {
      if (least_[kind] == unknown) least_[kind] = solve(kind);
      return least_[kind] + static_cast<double>(kept.time) +
             price_ * static_cast<double>(kept.bytes);
    }

   private:
    static constexpr double unknown = -1e300;

    // Beyond what keeping everything costs.
    double solve(std::uint32_t kind) {
      const Stage& stage = chain_.all[chain_.kinds[kind].front()];
      if (stage.decided.empty()) return 0;
      std::optional<Cutting>& cutting = cuttings_[kind];
      if (!cutting)
        cutting.emplace(ProposalInput{trace_, needs_, stage, forward_ns_, held_, coded_});
      const Proposal found = cutting->solve(price_);
      const std::int64_t all = decided_bytes(trace_, stage);
      const auto beyond = [&](const Proposal& each) {
        return static_cast<double>(each.time) - price_ * static_cast<double>(all - each.kept);
      };
      double least = beyond(found);
      if (undoing_)
        for (const Proposal& corner : (*undoing_)[stage.kind])
          least = std::min(least, beyond(corner));
      return least;
    }

    const Trace& trace_;
    const Needs& needs_;
    const std::vector<std::int64_t>& forward_ns_;
    Held held_;
    const std::vector<std::vector<Coded>>* coded_;
    const Stages& chain_;
    const std::vector<std::vector<Proposal>>* undoing_;  ///< of single stages
    std::vector<std::optional<Cutting>> cuttings_;       ///< by kind
    double price_ = 0;
    std::vector<double> least_;
  };

 public:
  LeastCosts(const Planner& planner, Held held) : planner_(planner) {
    for (std::uint32_t operators = 0; operators <= planner.operators_.size(); ++operators)
      costs_.push_back(costs_of(planner.of(operators), held));
  }

  void set_price(double price) {
    for (std::vector<LeastCost>& costs : costs_)
      for (LeastCost& each : costs) each.set_price(price);
  }

  /// Calls visit(end, least cost) for all that may begin with stage s.
  template <typename Visit>
  void for_each(std::size_t s, const Visit& visit) {
    planner_.for_each_operators(planner_.stages_.all[s], [&](std::uint32_t operators) {
      const Planner& planner = planner_.of(operators);
      std::vector<LeastCost>& costs = costs_[operators];
      Kept kept;
      std::size_t end = s;
      const auto extend = [&](std::size_t to) {
        for (; end < to; ++end) {
          const StageCost& cost = planner.reference_.stages[end];
          kept.bytes += planner.bare_.stages[end].first.kept;
          kept.time += cost.time - planner_.reference_.stages[end].time;
        }
      };
      extend(s + 1);
      visit(end, costs[0].of(planner.stages_.all[s].kind, kept));
      for (std::size_t c = 0; c < planner.joined_.size(); ++c) {
        const Stage& stage = planner.joined_[c].beginning[s];
        if (stage.begin == stage.end) continue;
        extend(s + planner.joined_[c].length);
        visit(end, costs[c + 1].of(stage.kind, kept));
      }
    });
  }

 private:
  static std::vector<LeastCost> costs_of(const Planner& planner, Held held) {
    const auto with = [&](const Stages& chain, const std::vector<std::vector<Proposal>>* undoing) {
      return LeastCost(*planner.trace_, planner.needs_, planner.forward_ns_, held,
                       planner.coded_forms(), chain, undoing);
    };
    std::vector<LeastCost> costs = {with(planner.stages_, &planner.undoing_)};
    for (const JoinedStages& joined : planner.joined_) costs.push_back(with(joined.chain, nullptr));
    return costs;
  }

  const Planner& planner_;
  std::vector<std::vector<LeastCost>> costs_;  ///< by operators, then by chain
};

std::set<double> Planner::prices_of_free() const {
  std::set<double> prices = {0};
  for (std::uint32_t operators = 0; operators <= operators_.size(); ++operators)
    for (const std::vector<Proposal>& hull : of(operators).free_)
      for (const double price : prices_of(hull)) prices.insert(price);
  return prices;
}

/// Of what begins with a stage where so many times as much is kept: priced accordingly.
class Planner::CostsByTimes {
 public:
  CostsByTimes(const Planner& planner, Held held) : planner_(planner), held_(held) {}

  void set_price(double price) {
    price_ = price;
    for (auto& [times, costs] : costs_)
      if (times > 0) costs.set_price(static_cast<double>(times) * price);
  }
  LeastCosts& of(std::int64_t times) {
    const auto [found, is_new] = costs_.try_emplace(times, planner_, held_);
    if (is_new) found->second.set_price(static_cast<double>(times) * price_);
    return found->second;
  }

 private:
  const Planner& planner_;
  Held held_;
  double price_ = 0;
  std::map<std::int64_t, LeastCosts> costs_;
};

// At a moment outside of within(), of a joined stage that is under way only what stands before it
// is known: of it, and of all that stands behind the moment, nothing but what it costs at least,
// with what others keep. `passes`: room at moments of each, before each stage and behind all.
double Planner::bound_of_joined(const Moment& moment, const std::vector<Pass>& passes,
                                double link) const {
  CostsByTimes costs(*this, held_at(moment));
  const bool knows_within = std::ranges::any_of(passes, [](const Pass& pass) {
    return std::ranges::any_of(pass.within, [](const auto& stage) { return !stage.empty(); });
  });
  const std::vector<JoinedStages> none;
  UnderWay parts(*trace_, needs_, forward_ns_, bare_, stages_, knows_within ? joined_ : none);
  const ChunkOfStage& chunk = chunks_[moment.chunk];
  const std::size_t count = stages_.all.size();
  std::vector<double> behind(count + 1), fastest(count);  // of what begins with s
  const auto others = [&](std::size_t s) { return moment.beside[chunk_of(s)].kept; };
  const auto look_behind = [&] {
    for (std::size_t s = count; s-- > 0;) {
      behind[s] = fastest[s] = unlimited;
      costs.of(others(s)).for_each(s, [&](std::size_t end, double cost) {
        behind[s] = std::min(behind[s], cost + behind[end]);
        fastest[s] = std::min(fastest[s], cost);
      });
    }
  };
  look_behind();
  const std::int64_t at_hand = moment.beside[moment.chunk].kept + 1;
  std::set<double> prices;
  for (const double price : prices_of_free()) prices.insert(price / static_cast<double>(at_hand));
  prices = up_to(most_price(link), std::move(prices));
  double best = 0;
  best_at_prices({prices.begin(), prices.end()}, [&](double price) {
    costs.set_price(price);
    if (is_in_flight(moments_)) look_behind();
    parts.set_price(price);
    double most = 0;
    std::vector<double> before(count + 1, unlimited), under_way = before;
    before[0] = 0;
    for (std::size_t s = 0; s <= chunk.end; ++s) {
      const double time = kept_time() + std::min(before[s], under_way[s]) + behind[s];
      for (const Pass& pass : passes)
        if (s >= chunk.begin) most = std::max(most, time - price * pass.room[s]);
      if (s == chunk.end) break;
      costs.of(s < chunk.begin ? others(s) : at_hand)
          .for_each(s, [&](std::size_t end, double cost) {
            before[end] = std::min(before[end], before[s] + cost);
            for (std::size_t i = s + 1; i < end; ++i)
              under_way[i] = std::min(under_way[i], before[s] + fastest[s]);
          });
    }
    best = std::max(best, most);
    for (std::size_t s = 0; s < count; ++s)
      for (const Pass& pass : passes)
        for (const WithinStage& at : pass.within[s]) {
          if (!at.is_of_joined && under_way[s] < unlimited) continue;
          const double its =
              kept_time() + behind[s + 1] + cheapest(at.hull, price) - price * at.room;
          double least = its + before[s];
          // Cuts are dear: not where the moment is no tighter whatever is under way.
          if (least <= best) continue;
          parts.for_each(s, [&](std::size_t first, double cost) {
            least = std::min(least, its + before[first] + cost);
          });
          most = std::max(most, least);
          best = std::max(best, most);
        }
    return most;
  });
  return best;
}

// Moments with as much beside them are looked at together.
std::int64_t Planner::bound_of_joined(std::int64_t bytes, double link) const {
  const auto kept = [](const Moment& moment) {
    std::vector<std::int64_t> all;
    for (const ChunkInFlight& chunk : moment.beside) all.push_back(chunk.kept);
    return all;
  };
  double most = 0;
  std::vector<const Moment*> left = bounding_moments();
  while (!left.empty()) {
    const Moment& moment = *left.front();
    std::vector<Pass> passes;
    std::erase_if(left, [&](const Moment* other) {
      if (other->chunk != moment.chunk || kept(*other) != kept(moment) ||
          held_at(*other) != held_at(moment))
        return false;
      Pass& pass = passes.emplace_back();
      pass.room = other->is_backward ? backward_room(*other, bytes, link)
                                     : forward_room(*other, bytes, link);
      pass.within = within(*other, pass.room);
      return true;
    });
    most = std::max(most, bound_of_joined(moment, passes, link));
  }
  return std::max(static_cast<std::int64_t>(most), least_launches());
}

}  // namespace tidemark
