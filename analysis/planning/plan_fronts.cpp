// Points at equal distances in memory, the same for all classes, each evaluated like any plan.
#include "analysis/planning/plan_fronts.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "analysis/planning/plan_groups.h"
#include "base/parallel.h"

namespace tidemark {
namespace {

using Classes = std::vector<std::vector<Allowed>>;

// Each does more than the one before. "anything" is offload, too.
Classes classes_of(const PlanRequest& request) {
  Classes classes = {{Allowed::Exact}};
  for (const Allowed each : exactly(request).allowed) {
    if (each == Allowed::Exact) continue;
    classes.push_back(classes.back());
    classes.back().push_back(each);
  }
  if (class_name(classes.back()) != class_name(request.allowed)) classes.push_back(request.allowed);
  return classes;
}

FrontPoint point_of(const PlanSearches& searches, const FoundPlan& found, Measure measure) {
  const Planner& planner = found.search->planner();
  const std::vector<Planner::Part> parts = found.search->parts_at(found.point);
  Report report = searches.report_of(found);
  const Bytes budget = measured(report, measure);
  FrontPoint point{budget,
                   std::move(report),
                   groups_of(planner, parts),
                   binding_of(planner, parts),
                   found.search->step_at(found.point),
                   planner.error_at(found.point)};
  point.planned.derived.reset();  // large, and made again in milliseconds
  return point;
}

}  // namespace

// What fragmentation adds must not make a larger budget look worse.
void add_point(FrontPoint point, PlanFront& front) {
  std::vector<FrontPoint>& points = front.points;
  if (!points.empty() && point.report.step >= points.back().report.step) return;
  // Fragmentation: a plan of more live bytes may be given less.
  while (!points.empty() && points.back().budget >= point.budget) points.pop_back();
  point.report.strategy = fmt::format("front:{}", points.size() + 1);
  points.push_back(std::move(point));
}

std::vector<PlanFront> fronts_of(const PlanSearches& own, const Planning& planning,
                                 const PlanWatch& watch) {
  const std::size_t count = planning.request.front_points;
  const Classes classes = classes_of(planning.request);
  const std::int64_t least = own.least_bytes(), most = own.exact()[own.exact().size() - 1].bytes;
  std::vector<PlanFront> fronts;
  for (const std::vector<Allowed>& allowed : classes) {
    PlanRequest request = planning.request;
    request.allowed = allowed;
    PlanFront& front = fronts.emplace_back(PlanFront{request.allowed});
    std::optional<PlanSearches> made;
    if (fronts.size() < classes.size())
      made.emplace(planning.trace, planning.comparison.scenario.device, planning.comparison.budget,
                   request, watch);
    const PlanSearches& searches = made ? *made : own;
    front.size = searches.exact().size();
    std::vector<std::optional<FrontPoint>> points(count);
    std::atomic<std::size_t> done = 0;
    parallel_for(count, [&](std::size_t i) {
      if (is_stopped(watch)) return;
      const auto last = static_cast<double>(std::max<std::size_t>(count - 1, 1));
      const double share = static_cast<double>(i) / last;
      const auto range = static_cast<double>(most - least);
      const std::int64_t bytes = least + static_cast<std::int64_t>(share * range);
      if (const std::optional<FoundPlan> found = searches.within_sums(bytes))
        points[i] = point_of(searches, *found, request.measure);
      tell(watch,
           fmt::format("{}: {} of {} points of the front", class_name(allowed), ++done, count));
    });
    for (std::optional<FrontPoint>& point : points)
      if (point) add_point(std::move(*point), front);
  }
  return fronts;
}

std::vector<FrontRow> rows_of(const std::vector<PlanFront>& fronts, std::size_t most) {
  std::vector<Bytes> budgets;
  for (const PlanFront& front : fronts)
    for (const FrontPoint& point : front.points) budgets.push_back(point.budget);
  std::ranges::sort(budgets);
  std::vector<FrontRow> rows;
  for (const Bytes budget : budgets) {
    FrontRow row{budget, {}};
    for (const PlanFront& front : fronts) {
      const auto after = std::ranges::upper_bound(front.points, budget, {}, &FrontPoint::budget);
      row.points.push_back(after == front.points.begin() ? nullptr : &*(after - 1));
    }
    if (rows.empty() || rows.back().points != row.points) rows.push_back(std::move(row));
  }
  if (rows.size() <= most) return rows;
  std::vector<FrontRow> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(rows[i * (rows.size() - 1) / (most - 1)]);
  return some;
}

}  // namespace tidemark
