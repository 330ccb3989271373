// Levers are never pulled silently: a plan is for the step that was asked for.
#include "analysis/planning/advice.h"

#include <algorithm>

#include "analysis/levers.h"
#include "analysis/planning/plan_searches.h"
#include "base/error.h"

namespace tidemark {
namespace {

// Those that the plan has, in every block: a lever is one change, and all sets of operators once
// more for each lever would take four times as long.
std::string operators_of(const PlannedStep& planned) {
  std::vector<StrategySpec::Component> everywhere = planned.rewrites;
  for (auto& component : everywhere) component.arguments = {};
  return everywhere.empty() ? std::string(reference_strategy().name) : strategy_text(everywhere);
}

// Nothing where the step cannot be built so.
std::optional<Advice> planned_with(const Lever& lever, const Planning& planning,
                                   const PlanWatch& watch) {
  try {
    const MemoryBudget memory{planning.comparison.budget.capacity, lever.changed.allocator};
    const PlanSearches searches(trace_of(lever.changed), lever.changed.device, memory,
                                planning.request, watch, operators_of(planning.planned));
    const std::optional<FoundPlan> found = plan_for(searches, planning);
    const Report report = searches.report_of(found ? *found : searches.smallest());
    return Advice{lever.option,      report.allocated_peak,
                  report.step,       measured(report, planning.request.measure),
                  found.has_value(), report.fits};
  } catch (const InputError&) {
    return std::nullopt;
  }
}

template <typename Number>
bool is_less(Number changed, Number before) {
  return static_cast<double>(changed) < (1 - least_effect) * static_cast<double>(before);
}

bool binds_at_loss(const Planning& planning) {
  const Report& row = planning.comparison.rows.back();
  return planning.loss_binds && row.step > planning.comparison.rows.front().step;
}

}  // namespace

std::vector<Advice> advice_for(const Planning& planning, const PlanWatch& watch) {
  std::vector<Advice> found;
  if (planning.request.max_slowdown) return found;
  const Report& row = planning.comparison.rows.back();
  if (planning.feasible && !binds_at_loss(planning)) return found;
  for (const Lever& lever : levers_of(planning.comparison.scenario)) {
    if (planning.feasible && lever.relief != Relief::Loss) continue;
    if (is_stopped(watch)) break;
    tell(watch, "with " + lever.option);
    const std::optional<Advice> advice = planned_with(lever, planning, watch);
    if (!advice) continue;
    const bool helps =
        planning.feasible
            ? advice->is_feasible && is_less(advice->step.count(), row.step.count())
            : advice->is_feasible ||
                  is_less(advice->measured.count, measured(row, planning.request.measure).count);
    if (helps) found.push_back(*advice);
  }
  std::ranges::stable_sort(found, [](const Advice& a, const Advice& b) {
    if (a.is_feasible != b.is_feasible) return a.is_feasible;
    return a.is_feasible ? a.step < b.step : a.measured < b.measured;
  });
  return found;
}

}  // namespace tidemark
