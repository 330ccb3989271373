// Bounds for plans whose errors are bounded, too: with a price ν of error for all that a plan may
// do,
//   time(plan) >= min over plans of (time + ν · error) − ν · most,
// for each plan within the bound. The minimum is the bound of a planner to which codes and
// operators cost so much more.
#include <algorithm>
#include <cmath>

#include "simulator/planner/planner.h"

namespace tidemark {
namespace {

// In steps per bound: where all that is allowed is worth such a share of the step's time. Any price
// gives a valid bound, and the bound has one summit.
constexpr std::array coarse_shares = {1. / 1024, 1. / 256, 1. / 64, 1. / 16, 1. / 4};
constexpr int halvings = 2;

// ns, eleven days: what no plan takes. Errors that nobody has measured are infinite.
constexpr double never = 1e15;

}  // namespace

// Of at least one block, if its own operators were the plan's only ones.
bool Planner::has_block_within_bound() const {
  if (!bounds_errors()) return true;
  return std::ranges::any_of(stages_.all, [&](const Stage& stage) {
    return stage.block >= 0 &&
           stage_error(*noise_, stage, keep_all(stage)).square() <= settings_.most_error;
  });
}

double Planner::price_of_errors(double share) const {
  return share * kept_time() / settings_.most_error;
}

std::vector<std::vector<Coded>> Planner::coded_at(double price) const {
  std::vector<std::vector<Coded>> coded = coded_;
  for (std::size_t t = 0; t < coded.size(); ++t)
    for (Coded& each : coded[t])
      each.time += static_cast<std::int64_t>(
          price * noise_->of_codes(static_cast<TensorId>(t), each.encoding.bits));
  return coded;
}

Planner::Planner(const Planner& plain, PriceOfError price) : Planner(plain) {
  coded_ = plain.coded_at(price.price);
  for (const Mode& mode : plain.modes_) modes_.push_back({mode.held, {mode.menus.front()}});
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    const double error = stage_error(*noise_, stages_.all[s], keep_all(stages_.all[s])).square();
    reference_.stages[s].time += static_cast<std::int64_t>(std::min(price.price * error, never));
  }
  for (std::uint32_t kind = 0; kind < stages_.kinds.size(); ++kind)
    if (!keeping_[kind].empty()) cut(kind, &coded_);
  for (const BlockOperators& each : plain.operators_)
    operators_.push_back(
        {each.components, std::shared_ptr<const Planner>(new Planner(*each.everywhere, price))});
}

// The best of coarse prices, then of those beside it, nearer each time.
template <typename Bound>
std::int64_t Planner::best_at_prices_of_errors(std::int64_t enough, Bound bound) const {
  if (!bounds_errors()) return bound(*this);
  const auto bound_at = [&](double share) {
    const double price = price_of_errors(share);
    const double most = static_cast<double>(bound(Planner(*this, PriceOfError{price})));
    return static_cast<std::int64_t>(std::floor(most - price * settings_.most_error));
  };
  std::int64_t best = bound(*this);
  double best_share = coarse_shares.front();
  const auto look_at = [&](double share) {
    if (best >= enough) return;
    if (const std::int64_t found = bound_at(share); found > best) best = found, best_share = share;
  };
  for (const double share : coarse_shares) look_at(share);
  double factor = 2;
  for (int i = 0; i < halvings; ++i, factor = std::sqrt(factor)) {
    const double middle = best_share;
    look_at(middle * factor);
    look_at(middle / factor);
  }
  return best;
}

std::int64_t Planner::lower_bound(std::int64_t bytes, double link, std::int64_t enough) const {
  return best_at_prices_of_errors(
      enough, [&](const Planner& planner) { return planner.bound_of_single(bytes, link); });
}

std::int64_t Planner::lower_bound_of_joined(std::int64_t bytes, double link,
                                            std::int64_t enough) const {
  return best_at_prices_of_errors(
      enough, [&](const Planner& planner) { return planner.bound_of_joined(bytes, link); });
}

}  // namespace tidemark
