// Plans whose recovery runs on a second stream: the best of the bounds in which runs count with
// what they take of each resource that streams share (load.h), and of one that knows what runs
// beside what.
//
// With G the time of all else, R_i that of each recovery, and s_ij what a ns of it saves beside
// gradient j (shared_runs.h), of which there are G_j ns,
//   time >= G + Σ R_i − the most of Σ s_ij y_ij, with Σ_i y_ij <= G_j and Σ_j y_ij <= R_i,
// and for any prices u_j >= 0 that most is, by its dual, at most
//   Σ G_j u_j + Σ R_i · max_j (s_ij − u_j, 0):
// a recovery costs its time less what it saves beyond the prices, and the rest is known before any
// plan is. With u_j = 1 − gradient j's share of the SMs (of the bandwidth) this is no lower than
// the sum of shares; the best prices are others.
#include <algorithm>

#include "simulator/graph/recovery.h"
#include "simulator/planner/planner.h"

namespace tidemark {

Planner::Planner(const Planner& plain, Resource resource, OnlyBounds) : Planner(plain) {
  for (const Mode& mode : plain.modes_) modes_.push_back({mode.held, {mode.menus.front()}});
  count(resource);
  for (const BlockOperators& each : plain.operators_)
    operators_.push_back({each.components, std::shared_ptr<const Planner>(new Planner(
                                               *each.everywhere, resource, OnlyBounds()))});
}

std::int64_t Planner::lower_bound_of_streams(std::int64_t bytes, double link, bool are_joined,
                                             std::int64_t enough) const {
  std::int64_t most = 0;
  for (const Resource resource : shared_resources) {
    if (most >= enough) break;
    const Planner planner(*this, resource, OnlyBounds());
    most = std::max(most, are_joined ? planner.lower_bound_of_joined(bytes, link, enough)
                                     : planner.lower_bound(bytes, link, enough));
  }
  return std::max(most, bound_of_neighbours(bytes, link, are_joined, most));
}

Planner::Planner(const Planner& plain, const PricesBeside& beside) : Planner(plain) {
  for (const Mode& mode : plain.modes_) modes_.push_back({mode.held, {mode.menus.front()}});
  reference_.rest_time -= beside.saved_within();
  for (std::size_t i = 0; i < forward_ns_.size(); ++i) {
    const auto ns = static_cast<double>(forward_load_[i][Resource::Time]);
    if (ns == 0) continue;
    const SharedRuns run{static_cast<double>(forward_load_[i][Resource::Sms]) / ns,
                         static_cast<double>(forward_load_[i][Resource::Bandwidth]) / ns};
    forward_ns_[i] = static_cast<std::int64_t>((1 - beside.saved_by(run)) * ns);
  }
  for (std::uint32_t kind = 0; kind < stages_.kinds.size(); ++kind)
    if (!keeping_[kind].empty()) cut(kind, nullptr);
}

std::vector<SharedRuns> Planner::recovered_within(std::int64_t bytes) const {
  const std::optional<std::size_t> point = within(bytes);
  if (!point) return runs_of(forward_load_, std::vector<bool>(forward_load_.size(), true));
  return runs_of(forward_load_, derive_recovery(*trace_, plan_at(*point), needs_).reruns);
}

// Gradients that read codes, or are of other operators, are other runs: of such plans nothing is
// said here.
std::int64_t Planner::bound_of_neighbours(std::int64_t bytes, double link, bool are_joined,
                                          std::int64_t enough) const {
  if (!coded_.empty() || !operators_.empty() || bounds_errors()) return 0;
  const Planner planner(*this, best_prices(gradient_runs_, recovered_within(bytes)));
  return are_joined ? planner.lower_bound_of_joined(bytes, link, enough)
                    : planner.lower_bound(bytes, link, enough);
}

}  // namespace tidemark
