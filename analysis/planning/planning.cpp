// Plans, evaluates what is planned as any strategy's plan, and describes it.
#include "analysis/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/advice.h"
#include "analysis/planning/emitted_forms.h"
#include "analysis/planning/plan_groups.h"
#include "analysis/planning/plan_search.h"
#include "simulator/cost/cost_model.h"

namespace tidemark {
namespace {

std::string title_of(const Planning& planning) {
  if (planning.request.max_slowdown)
    return fmt::format("plan:+{:g}%", 100 * *planning.request.max_slowdown);
  if (!planning.request.budget) return "plan";
  return fmt::format("plan:{}", to_text(planning.budget));
}

/// Of the time on the link that does not fit beside a stage's forward, so much is counted. A plan's
/// true time is simulated, so each is only a proposal.
constexpr std::array shares_beyond = {1.0, 0.5, 0.25, 0.0};

using Searches = std::vector<PlanSearch>;

struct Found {
  const PlanSearch* search;
  std::size_t point;
};

double link_of(const PlanRequest& request, const Device& device) {
  return may_offload(request) ? device.host_link_bytes_per_second * 1e-9 : 0;
}

Searches searches_for(const Scenario& scenario, const PlanRequest& request,
                      const MemoryBudget& memory) {
  Searches searches;
  searches.emplace_back(trace_of(scenario), scenario.device, memory, request.measure, request.form,
                        code_bits_of(request));
  if (may_offload(request))
    for (const double share : shares_beyond)
      searches.push_back(searches.front().with_offload(share, request.host_budget));
  return searches;
}

Report evaluated(const Found& found, const Planning& planning) {
  const Comparison& comparison = planning.comparison;
  PlannedStep step = found.search->step_at(found.point);
  const Trace& trace = *step.trace;
  return evaluate(trace, std::move(step), comparison.scenario.device, comparison.budget).report;
}

/// The best of what each search finds; of equals the first, which offloads nothing.
template <typename Find, typename Worth>
std::optional<Found> best_of(const Searches& searches, Find find, Worth worth) {
  std::optional<Found> best;
  for (const PlanSearch& search : searches) {
    const std::optional<std::size_t> point = find(search);
    if (!point) continue;
    if (!best || worth(search, *point) < worth(*best->search, best->point))
      best = Found{&search, *point};
  }
  return best;
}

Found smallest_of(const Searches& searches) {
  return *best_of(
      searches, [](const PlanSearch&) { return std::optional<std::size_t>(0); },
      [](const PlanSearch& search, std::size_t point) { return search.bytes_of(point); });
}

std::optional<Found> plan_for(const Searches& searches, const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!request.max_slowdown)
    return best_of(
        searches,
        [&](const PlanSearch& search) { return search.within(planning.budget, !request.budget); },
        [](const PlanSearch& search, std::size_t point) { return search.time_of(point); });
  const double vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
  const Nanoseconds longest(static_cast<std::int64_t>(vanilla * (1 + *request.max_slowdown)));
  return best_of(
      searches, [&](const PlanSearch& search) { return search.not_longer(longest); },
      [](const PlanSearch& search, std::size_t point) { return search.bytes_of(point); });
}

void certify(const Planner& planner, Planning& planning, const Report& row, Bytes budget) {
  const double link = link_of(planning.request, planning.comparison.scenario.device);
  planning.lower_bound =
      Nanoseconds(planning.joins_blocks ? planner.lower_bound_of_joined(budget.count, link)
                                        : planner.lower_bound(budget.count, link));
  planning.gap = static_cast<double>(row.step.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, planning.lower_bound.count())) -
                 1;
}

// What the restriction to a form costs.
void compare_forms(const Planner& planner, std::size_t point, Planning& planning) {
  planning.blocks = wrapped_blocks(planner, point);
  if (planning.request.max_slowdown) return;
  const PlanSearch of_tensors(planning.planned.trace, planning.comparison.scenario.device,
                              planning.comparison.budget, planning.request.measure);
  if (const std::optional<std::size_t> best = point_for(of_tensors, planning))
    planning.step_of_tensors = evaluated({&of_tensors, *best}, planning).step;
}

// Points at equal distances in memory, each with the least time so far: what fragmentation adds
// must not make a larger budget look worse.
void add_front(const Searches& searches, Planning& planning,
               const std::function<void(std::size_t done)>& progress) {
  const std::size_t count = planning.request.front_points;
  const Planner& exact = searches.front().planner();
  std::int64_t least = exact[0].bytes;
  for (const PlanSearch& search : searches)
    least = std::min(least, std::max(search.planner().rest(), search.planner()[0].bytes));
  const std::int64_t most = exact[exact.size() - 1].bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto share =
        static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(count - 1, 1));
    const auto bytes = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    const std::optional<Found> found = best_of(
        searches, [&](const PlanSearch& search) { return search.planner().within(bytes); },
        [](const PlanSearch& search, std::size_t point) { return search.time_of(point); });
    if (progress) progress(i + 1);
    if (!found) continue;
    Report report = evaluated(*found, planning);
    report.strategy = fmt::format("front:{}", planning.front.size() + 1);
    const Bytes budget = measured(report, planning.request.measure);
    const bool is_worse =
        !planning.front.empty() && report.step >= planning.front.back().report.step;
    if (!is_worse) planning.front.push_back({budget, std::move(report)});
  }
}

}  // namespace

namespace {

bool allows(const PlanRequest& request, Allowed what) {
  return std::ranges::find(request.allowed, what) != request.allowed.end();
}

}  // namespace

bool may_offload(const PlanRequest& request) {
  return allows(request, Allowed::Offload) || allows(request, Allowed::Anything);
}

std::vector<int> code_bits_of(const PlanRequest& request) {
  if (allows(request, Allowed::Anything)) return {8, 4, 2};
  if (allows(request, Allowed::Lossy)) return {8};
  return {};
}

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

std::optional<std::size_t> point_for(const PlanSearch& search, const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!request.max_slowdown) return search.within(planning.budget, !request.budget);
  const double vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
  return search.not_longer(
      Nanoseconds(static_cast<std::int64_t>(vanilla * (1 + *request.max_slowdown))));
}

Planning plan_within(const Scenario& scenario, const PlanRequest& request,
                     const std::function<void(std::size_t done)>& progress) {
  if (!scenario.step.mesh.is_one())
    throw UsageError(fmt::format(
        "plans are made for the step of one GPU, and this is one of {} (compare takes strategies)",
        scenario.step.mesh.gpus()));
  Planning planning;
  planning.request = request;
  Scenario asked = scenario;
  asked.budget = {};  // `fits` is about the device, the request's budget about its measure
  asked.strategies = {parse_strategy(reference_strategy().name)};
  planning.comparison = compare(asked);
  Comparison& comparison = planning.comparison;
  planning.budget = request.budget.value_or(comparison.budget.capacity);

  const auto begin = std::chrono::steady_clock::now();
  const Searches searches = searches_for(asked, request, comparison.budget);
  const std::optional<Found> found = plan_for(searches, planning);
  planning.solve = std::chrono::steady_clock::now() - begin;

  planning.feasible = found.has_value();
  const Found plan = found ? *found : smallest_of(searches);
  const Planner& planner = plan.search->planner();
  planning.front_size = planner.size();
  planning.rest = Bytes{planner.rest()};
  planning.planned = plan.search->step_at(plan.point);
  planning.planned.plan.strategy = title_of(planning);
  comparison.rows.push_back(evaluated(plan, planning));
  comparison.rows.back().strategy = title_of(planning);
  add_ratios(comparison.rows);
  const Report& row = comparison.rows.back();
  planning.groups = groups_of(planner, plan.point);
  planning.joins_blocks =
      std::ranges::any_of(planning.groups, [](const PlanGroup& group) { return group.joined > 1; });
  certify(planner, planning, row,
          request.max_slowdown ? measured(row, planning.request.measure) : planning.budget);
  planning.binding = binding_of(planner, plan.point);
  if (request.form != PlanForm::Tensors) compare_forms(planner, plan.point, planning);
  const Planner::Tightest tightest = planner.tightest(plan.point);
  planning.loss_binds = tightest.stage && *tightest.stage + 1 == planner.stages().all.size();
  planning.advice = advice_for(planning);
  add_front(searches, planning, progress);
  if (request.lists_forms) planning.forms = emitted_forms(planning);
  return planning;
}

}  // namespace tidemark
