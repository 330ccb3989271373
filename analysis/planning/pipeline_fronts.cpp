// A point of the front is what a budget gives on the pipeline's clock.
#include "analysis/planning/pipeline_fronts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/plan_fronts.h"

namespace tidemark {
namespace {

FrontPoint point_within(std::int64_t bytes, const StageSearches& searches,
                        const Planning& planning) {
  const FoundPlans plans = searches.within_sums(bytes);
  const RankEvaluations made = searches.evaluated(plans);
  const std::size_t shown = shown_rank(made, planning.comparison.scenario.step.rank);
  FrontPoint point;
  point.report = made.classes[shown].report;
  point.stages = searches.described(plans, made);
  point.budget = most_measured(point.stages, planning.request.measure);
  point.binding = point.stages[shown].binding;
  for (StagePlan& stage : point.stages) stage.planned.derived.reset();  // as in plan_fronts.cpp
  return point;
}

}  // namespace

PlanFront front_of_stages(const StageSearches& searches, const Planning& planning,
                          const PlanWatch& watch) {
  const std::vector<std::int64_t> budgets = searches.budgets();
  const std::size_t count = planning.request.front_points;
  PlanFront front{planning.request.allowed, budgets.size()};
  const std::int64_t range = budgets.back() - budgets.front();
  for (std::size_t i = 0; i < count && !is_stopped(watch); ++i) {
    const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(count - 1, 1));
    const std::int64_t bytes = budgets.front() + range / steps * static_cast<std::int64_t>(i);
    add_point(point_within(i + 1 == count ? budgets.back() : bytes, searches, planning), front);
    tell(watch, fmt::format("{} of {} points of the front", i + 1, count));
  }
  return front;
}

}  // namespace tidemark
