// What stages recompute lengthens their backwards alone, and no backward that is longer lets the
// pipeline be faster: with more bytes for each it takes no longer, so that budgets can be searched.
#include "analysis/planning/stage_searches.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/plan_groups.h"
#include "simulator/planner/in_flight.h"

namespace tidemark {
StageSearches::StageSearches(std::vector<std::shared_ptr<const Trace>> traces,
                             const Planning& planning, const PlanWatch& watch)
    : traces_(std::move(traces)),
      device_(planning.comparison.scenario.device),
      memory_(planning.comparison.budget) {
  for (const auto& trace : traces_) {
    tell(watch, fmt::format("plans of stage {} of {}", stages_.size() + 1, traces_.size()));
    stages_.push_back(
        std::make_unique<const PlanSearches>(trace, device_, memory_, planning.request, watch));
  }
}

std::vector<std::int64_t> StageSearches::budgets() const {
  std::int64_t least = 0;
  for (const auto& stage : stages_) least = std::max(least, stage->least_bytes());
  std::vector<std::int64_t> all = {least};
  for (const auto& stage : stages_)
    for (std::size_t point = 0; point < stage->exact().size(); ++point)
      all.push_back(std::max(least, stage->exact()[point].bytes));
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

FoundPlans StageSearches::within_sums(std::int64_t bytes) const {
  FoundPlans found;
  for (const auto& stage : stages_)
    found.push_back(stage->within_sums(bytes).value_or(stage->smallest()));
  return found;
}

std::optional<FoundPlans> StageSearches::not_longer(Nanoseconds step) const {
  const std::vector<std::int64_t> all = budgets();
  std::optional<FoundPlans> found;
  for (std::size_t low = 0, high = all.size(); low < high;) {
    const std::size_t middle = (low + high) / 2;
    FoundPlans plans = within_sums(all[middle]);
    if (evaluated(plans).classes.front().report.step <= step)
      found = std::move(plans), high = middle;
    else
      low = middle + 1;
  }
  return found;
}

FoundPlans StageSearches::smallest() const {
  FoundPlans found;
  for (const auto& stage : stages_) found.push_back(stage->smallest());
  return found;
}

RankEvaluations StageSearches::evaluated(const FoundPlans& plans) const {
  std::vector<PlannedStep> steps;
  for (const FoundPlan& plan : plans) steps.push_back(plan.search->step_at(plan.point));
  return evaluate_all_ranks(traces_, std::move(steps), device_, memory_);
}

RankEvaluations StageSearches::evaluated(const StrategySpec& strategy) const {
  return evaluate_all_ranks(traces_, strategy, device_, memory_);
}

StagePlan StageSearches::described(std::size_t stage, const FoundPlan& plan) const {
  const Planner& planner = plan.search->planner();
  const std::vector<Planner::Part> parts = plan.search->parts_at(plan.point);
  StagePlan made;
  made.is_feasible = true;
  made.in_flight = most_kept(moments_of(traces_[stage]->step));
  made.planned = plan.search->step_at(plan.point);
  made.binding = binding_of(planner, parts);
  made.rest = Bytes{planner.rest()};
  made.front_size = planner.size();
  made.groups = groups_of(planner, parts);
  made.joins_blocks =
      std::ranges::any_of(made.groups, [](const PlanGroup& group) { return group.joined > 1; });
  return made;
}

std::vector<StagePlan> StageSearches::described(const FoundPlans& plans,
                                                const RankEvaluations& made) const {
  std::vector<StagePlan> all;
  for (std::size_t s = 0; s < size(); ++s) {
    all.push_back(described(s, plans[s]));
    all.back().report = made.classes[s].report;
  }
  return all;
}

}  // namespace tidemark
