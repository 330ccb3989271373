// Asks the planner as the command line does, and makes a strategy of each point.
#include "gui/planned.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/plan_json.h"

namespace tidemark::gui {
namespace {

// So many positions of a slider that is 250 pixels wide can be told apart.
constexpr std::size_t points_of_slider = 32;

PlannedPoint point_of(const FrontPoint& point, const Report& vanilla) {
  PlannedPoint made{point, read_plan(write_plan(point.planned, {}), ""), 1};
  made.plan.text = fmt::format("plan:{}", to_text(point.budget));
  made.slowdown = static_cast<double>(point.report.step.count()) /
                  static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
  return made;
}

std::shared_ptr<const PlannedFront> planned(const PlanQuestion& question,
                                            const std::function<bool()>& is_outdated) {
  const PlanRequest request{.allowed = {question.allowed}, .front_points = points_of_slider};
  // Nothing is known of the device's link to the host: another device was chosen since.
  if (may_offload(request) && question.scenario.device.host_link_bytes_per_second <= 0)
    return nullptr;
  try {
    const Planning planning = plan_within(question.scenario, request, {.is_stopped = is_outdated});
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

std::size_t PlannedFront::within(Bytes budget) const {
  const auto after = std::ranges::upper_bound(
      points, budget, {}, [](const PlannedPoint& each) { return each.point.budget; });
  return after == points.begin() ? 0 : static_cast<std::size_t>(after - points.begin()) - 1;
}

Planned::Planned() : Newest(planned) {}

}  // namespace tidemark::gui
