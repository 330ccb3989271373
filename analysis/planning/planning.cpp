// Plans, evaluates what is planned as any strategy's plan, and describes it.
#include "analysis/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/plan_groups.h"
#include "analysis/planning/plan_search.h"
#include "analysis/remedies.h"
#include "simulator/cost/cost_model.h"

namespace tidemark {
namespace {

std::string title_of(const Planning& planning) {
  if (planning.request.max_slowdown)
    return fmt::format("plan:+{:g}%", 100 * *planning.request.max_slowdown);
  if (!planning.request.budget) return "plan";
  return fmt::format("plan:{}", to_text(planning.budget));
}

Report evaluated(const PlanSearch& search, std::size_t point, const Planning& planning) {
  const Comparison& comparison = planning.comparison;
  PlannedStep step = search.step_at(point);
  const Trace& trace = *step.trace;
  return evaluate(trace, std::move(step), comparison.scenario.device, comparison.budget).report;
}

std::optional<std::size_t> point_for(const PlanSearch& search, const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!request.max_slowdown) return search.within(planning.budget, !request.budget);
  const double vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
  return search.not_longer(
      Nanoseconds(static_cast<std::int64_t>(vanilla * (1 + *request.max_slowdown))));
}

void certify(const PlanSearch& search, Planning& planning, const Report& row, Bytes budget) {
  planning.lower_bound = Nanoseconds(search.planner().lower_bound(budget.count));
  planning.gap = static_cast<double>(row.step.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, planning.lower_bound.count())) -
                 1;
}

// Points at equal distances in memory, each with the least time so far: what fragmentation adds
// must not make a larger budget look worse.
void add_front(const PlanSearch& search, Planning& planning,
               const std::function<void(std::size_t done)>& progress) {
  const Planner& planner = search.planner();
  const std::size_t count = planning.request.front_points;
  const std::size_t first = planner.within(std::max(planner.rest(), planner[0].bytes)).value_or(0);
  const std::int64_t least = planner[first].bytes, most = planner[planner.size() - 1].bytes;
  std::size_t last = planner.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto share =
        static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(count - 1, 1));
    const auto bytes = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    const std::size_t point = planner.within(bytes).value_or(first);
    if (point == last) continue;
    last = point;
    Report report = evaluated(search, point, planning);
    report.strategy = fmt::format("front:{}", planning.front.size() + 1);
    const Bytes budget = measured(report, planning.request.measure);
    const bool is_worse =
        !planning.front.empty() && report.step >= planning.front.back().report.step;
    if (!is_worse) planning.front.push_back({budget, std::move(report)});
    if (progress) progress(i + 1);
  }
}

}  // namespace

Bytes measured(const Report& report, Measure measure) {
  switch (measure) {
    case Measure::Allocated:
      return report.allocated_peak;
    case Measure::Reserved:
      return report.reserved_peak;
    case Measure::Planned:
      return report.planned;
    case Measure::Live:
      return report.live_peak;
  }
  CHECK(false);
  return {};
}

Planning plan_within(const Scenario& scenario, const PlanRequest& request,
                     const std::function<void(std::size_t done)>& progress) {
  Planning planning;
  planning.request = request;
  Scenario asked = scenario;
  asked.budget = {};  // `fits` is about the device, the request's budget about its measure
  asked.strategies = {parse_strategy(reference_strategy().name)};
  planning.comparison = compare(asked);
  Comparison& comparison = planning.comparison;
  planning.budget = request.budget.value_or(comparison.budget.capacity);

  const auto begin = std::chrono::steady_clock::now();
  const PlanSearch search(trace_of(asked), asked.device, comparison.budget, request.measure,
                          request.form);
  const std::optional<std::size_t> point = point_for(search, planning);
  planning.solve = std::chrono::steady_clock::now() - begin;

  planning.feasible = point.has_value();
  planning.front_size = search.planner().size();
  planning.rest = Bytes{search.planner().rest()};
  planning.planned = search.step_at(point.value_or(0));
  planning.planned.plan.strategy = title_of(planning);
  comparison.rows.push_back(evaluated(search, point.value_or(0), planning));
  comparison.rows.back().strategy = title_of(planning);
  add_ratios(comparison.rows);
  const Report& row = comparison.rows.back();
  certify(search, planning, row,
          request.max_slowdown ? measured(row, request.measure) : planning.budget);
  planning.binding = binding_of(search.planner(), point.value_or(0));
  planning.groups = groups_of(search.planner(), point.value_or(0));
  if (!planning.feasible)
    planning.advice = find_remedies(asked, comparison.budget, asked.strategies.front(), row);
  add_front(search, planning, progress);
  return planning;
}

}  // namespace tidemark
