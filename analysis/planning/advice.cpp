// Levers are never pulled silently: a plan is for the step that was asked for.
#include "analysis/planning/advice.h"

#include <algorithm>

#include "analysis/levers.h"
#include "analysis/planning/plan_search.h"
#include "base/error.h"

namespace tidemark {
namespace {

// Nothing where the step cannot be built so.
std::optional<Advice> planned_with(const Lever& lever, const Planning& planning) {
  try {
    const auto trace = trace_of(lever.changed);
    const MemoryBudget memory{planning.comparison.budget.capacity, lever.changed.allocator};
    const Device& device = lever.changed.device;
    const PlanSearch search(trace, device, memory, planning.request.measure, planning.request.form);
    const std::optional<std::size_t> point = point_for(search, planning);
    const Report report =
        evaluate(*trace, search.step_at(point.value_or(0)), device, memory).report;
    return Advice{lever.option,      report.allocated_peak,
                  report.step,       measured(report, planning.request.measure),
                  point.has_value(), report.fits};
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool binds_at_loss(const Planning& planning) {
  const Report& row = planning.comparison.rows.back();
  return planning.loss_binds && row.step > planning.comparison.rows.front().step;
}

}  // namespace

std::vector<Advice> advice_for(const Planning& planning) {
  std::vector<Advice> found;
  if (planning.request.max_slowdown) return found;
  const Report& row = planning.comparison.rows.back();
  if (planning.feasible && !binds_at_loss(planning)) return found;
  for (const Lever& lever : levers_of(planning.comparison.scenario)) {
    if (planning.feasible && lever.relief != Relief::Loss) continue;
    const std::optional<Advice> advice = planned_with(lever, planning);
    if (!advice) continue;
    const bool helps =
        planning.feasible
            ? advice->is_feasible && advice->step < row.step
            : advice->is_feasible || advice->measured < measured(row, planning.request.measure);
    if (helps) found.push_back(*advice);
  }
  std::ranges::stable_sort(found, [](const Advice& a, const Advice& b) {
    if (a.is_feasible != b.is_feasible) return a.is_feasible;
    return a.is_feasible ? a.step < b.step : a.measured < b.measured;
  });
  return found;
}

}  // namespace tidemark
