// The planners of all stages of a pipeline, asked for plans within the same bytes.
#pragma once

#include <memory>

#include "analysis/planning/plan_searches.h"
#include "analysis/rank_report.h"

namespace tidemark {

/// Of each stage, in order.
using FoundPlans = std::vector<FoundPlan>;

class StageSearches {
 public:
  /// `traces`: of all stages. `planning` has the request and the memory of a device.
  StageSearches(std::vector<std::shared_ptr<const Trace>> traces, const Planning& planning,
                const PlanWatch& watch);

  std::size_t size() const { return traces_.size(); }
  const PlanSearches& operator[](std::size_t stage) const { return *stages_[stage]; }

  /// Sums of bytes, rising: with the first each stage has a plan, and with each of the others some
  /// stage another one.
  std::vector<std::int64_t> budgets() const;
  /// Of each stage the fastest by its sums; of one without any the smallest.
  FoundPlans within_sums(std::int64_t bytes) const;
  /// With the smallest of the budgets for which all stages together take no longer; nothing where
  /// they always do.
  std::optional<FoundPlans> not_longer(Nanoseconds step) const;
  FoundPlans smallest() const;

  /// All of them together, simulated.
  RankEvaluations evaluated(const FoundPlans& plans) const;
  RankEvaluations evaluated(const StrategySpec& strategy) const;
  /// All about them but their bounds. `made`: what they are, evaluated.
  std::vector<StagePlan> described(const FoundPlans& plans, const RankEvaluations& made) const;

 private:
  StagePlan described(std::size_t stage, const FoundPlan& plan) const;

  std::vector<std::shared_ptr<const Trace>> traces_;
  Device device_;
  MemoryBudget memory_;
  std::vector<std::unique_ptr<const PlanSearches>> stages_;
};

}  // namespace tidemark
