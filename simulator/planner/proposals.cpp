// Prices that halve the hull's stretches, and what differs from its corners in one storage.
#include "simulator/planner/proposals.h"

#include <algorithm>
#include <cmath>

#include "simulator/planner/cutting.h"

namespace tidemark {
namespace {

constexpr std::size_t most_ops_of_a_stage = 4000;  // more where a trace has no blocks

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

bool can_be_cut(const Stage& stage) {
  return index(stage.end) - index(stage.begin) <= most_ops_of_a_stage;
}

bool can_drop_held(const Stages& stages) {
  bool holds_any = false;
  for (const Stage& stage : stages.all) {
    if (std::ranges::find(stage.held, true) == stage.held.end()) continue;
    if (!can_be_cut(stage)) return false;
    holds_any = true;
  }
  return holds_any;
}

std::vector<Proposal> hull_of(const ProposalInput& input) {
  Cutting cutting(input);
  const Proposal all = cutting.solve(0);
  const Proposal least = cutting.solve(cutting.highest_price());
  std::vector<Proposal> hull = {all};
  refine(cutting, all, least, hull);
  if (least.kept < all.kept) hull.push_back(least);
  return hull;
}

Proposal cheapest_at(const ProposalInput& input, double price) {
  return Cutting(input).solve(price);
}

std::vector<Proposal> cheapest_at(const ProposalInput& input, const std::vector<double>& prices) {
  Cutting cutting(input);
  std::vector<Proposal> found;
  for (const double price : prices) found.push_back(cutting.solve(price));
  return found;
}

std::vector<double> prices_of(const std::vector<Proposal>& hull) {
  std::vector<double> prices;
  for (std::size_t i = 0; i + 1 < hull.size(); ++i)
    prices.push_back(price_between(hull[i], hull[i + 1]));
  return prices;
}

std::vector<Proposal> neighbours_of(const ProposalInput& input, const std::vector<Proposal>& hull) {
  Cutting cutting(input);
  std::vector<Proposal> found;
  const std::vector<std::uint32_t> alike = cutting.alike_storages();
  const std::vector<double> prices = prices_of(hull);
  for (std::size_t corner = 0; corner < prices.size(); ++corner) {
    cutting.add_other_inputs(cutting.solve(prices[corner]), found);
    for (std::size_t d = 0; d < input.stage.decided.size(); ++d) {
      if (input.stage.held[d] && input.held != Held::Free) continue;
      if (alike[d] != d) continue;  // many experts of a layer
      const bool is_kept = hull[corner].plan.forms[d].action != Action::Recompute;
      found.push_back(cutting.solve_with(d, !is_kept));
    }
  }
  return undominated(std::move(found));
}

}  // namespace tidemark
