// Of what each planner finds, the best; of equals the first, which offloads nothing.
#include "analysis/planning/plan_searches.h"

namespace tidemark {
namespace {

/// Of the time on the link that does not fit beside a stage's forward, so much is counted.
constexpr std::array shares_beyond = {1.0, 0.5, 0.25, 0.0};

template <typename Find, typename Worth>
std::optional<FoundPlan> best_of(const std::vector<PlanSearch>& searches, Find find, Worth worth) {
  std::optional<FoundPlan> best;
  for (const PlanSearch& search : searches) {
    const std::optional<std::size_t> point = find(search);
    if (!point) continue;
    if (!best || worth(search, *point) < worth(*best->search, best->point))
      best = FoundPlan{&search, *point};
  }
  return best;
}

}  // namespace

PlanSearches::PlanSearches(const std::shared_ptr<const Trace>& trace, const Device& device,
                           const MemoryBudget& memory, const PlanRequest& request,
                           const PlanWatch& watch)
    : device_(device), memory_(memory) {
  all_.emplace_back(trace, device, memory, request.measure,
                    PlannerSettings{request.form, code_bits_of(request), watch.is_stopped});
  if (!may_offload(request)) return;
  for (const double share : shares_beyond) {
    if (watch.is_stopped && watch.is_stopped()) return;
    all_.push_back(all_.front().with_offload(share, request.host_budget));
  }
}

std::int64_t PlanSearches::least_bytes() const {
  std::int64_t least = exact()[0].bytes;
  for (const PlanSearch& search : all_) least = std::min(least, search.planner()[0].bytes);
  return least;
}

std::optional<FoundPlan> PlanSearches::within(Bytes budget, bool must_fit) const {
  return best_of(
      all_, [&](const PlanSearch& search) { return search.within(budget, must_fit); },
      [](const PlanSearch& search, std::size_t point) { return search.time_of(point); });
}

std::optional<FoundPlan> PlanSearches::within_sums(std::int64_t bytes) const {
  return best_of(
      all_, [&](const PlanSearch& search) { return search.planner().within(bytes); },
      [](const PlanSearch& search, std::size_t point) { return search.time_of(point); });
}

std::optional<FoundPlan> PlanSearches::not_longer(Nanoseconds step) const {
  return best_of(
      all_, [&](const PlanSearch& search) { return search.not_longer(step); },
      [](const PlanSearch& search, std::size_t point) { return search.bytes_of(point); });
}

FoundPlan PlanSearches::smallest() const {
  return *best_of(
      all_, [](const PlanSearch&) { return std::optional<std::size_t>(0); },
      [](const PlanSearch& search, std::size_t point) { return search.bytes_of(point); });
}

Report PlanSearches::report_of(const FoundPlan& found) const {
  PlannedStep step = found.search->step_at(found.point);
  const Trace& trace = *step.trace;
  return evaluate(trace, std::move(step), device_, memory_).report;
}

std::optional<FoundPlan> plan_for(const PlanSearches& searches, const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!request.max_slowdown) return searches.within(planning.budget, !request.budget);
  const double vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
  return searches.not_longer(
      Nanoseconds(static_cast<std::int64_t>(vanilla * (1 + *request.max_slowdown))));
}

}  // namespace tidemark
