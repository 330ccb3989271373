// Asks the planner as the command line does, and makes a strategy of each point.
#include "gui/planned.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/lever_table.h"
#include "base/error.h"
#include "simulator/plan_json.h"

namespace tidemark::gui {
namespace {

PlannedPoint point_of(const FrontPoint& point, const Report& vanilla) {
  PlannedPoint made{point, strategy_of(point), 1};
  made.slowdown = static_cast<double>(point.report.step.count()) /
                  static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
  return made;
}

std::shared_ptr<const PlannedFront> planned(const PlanQuestion& question,
                                            const Planned::Watch& watch) {
  const PlanRequest request{.allowed = {question.allowed}, .front_points = points_of_front};
  // Nothing is known of the device's link to the host: another device was chosen since.
  if (may_offload(request) && question.scenario.device.host_link_bytes_per_second <= 0)
    return nullptr;
  try {
    const Planning planning =
        plan_within(question.scenario, request, {.is_stopped = watch.is_outdated});
    if (planning.is_stopped) throw Outdated();
    auto front = std::make_shared<PlannedFront>();
    for (const FrontPoint& point : planning.fronts.back().points)
      front->points.push_back(point_of(point, planning.comparison.rows.front()));
    return front->points.empty() ? nullptr : front;
  } catch (const InputError&) {  // what is wrong is said where the step itself is predicted
    return nullptr;
  }
}

}  // namespace

StrategySpec strategy_of(const FrontPoint& point) {
  StrategySpec strategy = read_plan(plan_text(point), "");
  strategy.text = fmt::format("plan:{}", to_text(point.budget));
  return strategy;
}

std::size_t PlannedFront::within(Bytes budget) const {
  const auto after = std::ranges::upper_bound(
      points, budget, {}, [](const PlannedPoint& each) { return each.point.budget; });
  return after == points.begin() ? 0 : static_cast<std::size_t>(after - points.begin()) - 1;
}

Planned::Planned() : Newest(planned) {}

}  // namespace tidemark::gui
