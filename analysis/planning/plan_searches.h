// All planners that a request's class of plans needs, asked together.
#pragma once

#include "analysis/planning/plan_search.h"

namespace tidemark {

struct FoundPlan {
  const PlanSearch* search;
  std::size_t point;
};

/// The first offloads nothing, on one stream. The others, where that is allowed, count the link's
/// time in ways of their own, or fill it, or count what streams share; a plan's true time is
/// simulated, so each is only a proposal. Where gradients may be
/// approximate, all of them are there once more for each way to change the step's operators, and
/// once for all ways to change those of single blocks; those without a plan whose predicted error
/// stays within the request's bound are left out.
class PlanSearches {
 public:
  PlanSearches(const std::shared_ptr<const Trace>& trace, const Device& device,
               const MemoryBudget& memory, const PlanRequest& request, const PlanWatch& watch = {});
  /// With no other operators than the strategy's, in all blocks; with none where they alone exceed
  /// the request's bound on errors.
  PlanSearches(const std::shared_ptr<const Trace>& trace, const Device& device,
               const MemoryBudget& memory, const PlanRequest& request, const PlanWatch& watch,
               const std::string& operators);
  PlanSearches(const PlanSearches&) = delete;
  PlanSearches& operator=(const PlanSearches&) = delete;

  const Planner& exact() const { return sets_.front().front().planner(); }
  /// Least bytes of any of them, in sums.
  std::int64_t least_bytes() const;

  /// The fastest within the budget, if any is.
  std::optional<FoundPlan> within(Bytes budget, bool must_fit) const;
  /// Of sums alone: the bytes may come out a little larger.
  std::optional<FoundPlan> within_sums(std::int64_t bytes) const;
  /// The smallest that takes no longer.
  std::optional<FoundPlan> not_longer(Nanoseconds step) const;
  FoundPlan smallest() const;

  /// No plan of the request's class is faster in so many bytes, whichever operators it has; where
  /// `are_joined`, nor one that joins blocks. `link` as Planner::lower_bound() takes it.
  Nanoseconds lower_bound(std::int64_t bytes, double link, bool are_joined) const;

  /// Simulated, as any strategy's plan.
  Report report_of(const FoundPlan& found) const;

 private:
  const std::shared_ptr<const Trace> trace_;  ///< before anything changed operators
  const Device device_;
  const MemoryBudget memory_;
  void add(const PlannedStep& step, const PlanRequest& request, const PlanWatch& watch);
  void add_overlapping(std::vector<PlanSearch>& ways, const PlanRequest& request,
                       const PlanWatch& watch) const;
  void add_mixed();
  std::vector<const PlanSearch*> all() const;
  std::vector<const PlanSearch*> with_named_plans() const;

  /// By set of operators, all ways to count time, the same for each set.
  std::vector<std::vector<PlanSearch>> sets_;
};

/// What the request asks for: within its budget, or its time.
std::optional<FoundPlan> plan_for(const PlanSearches& searches, const Planning& planning);

}  // namespace tidemark
