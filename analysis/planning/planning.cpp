// Plans, evaluates what is planned as any strategy's plan, and describes it.
#include "analysis/planning/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "analysis/planning/advice.h"
#include "analysis/planning/emitted_forms.h"
#include "analysis/planning/pipeline_planning.h"
#include "analysis/planning/plan_fronts.h"
#include "analysis/planning/plan_groups.h"
#include "analysis/planning/plan_searches.h"
#include "base/error.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

double link_of(const PlanRequest& request, const Device& device) {
  return may_offload(request) ? device.host_link_bytes_per_second * 1e-9 : 0;
}

// A strategy that local plans cannot say is in no class of the bound: nothing is faster than both.
void certify(const PlanSearches& searches, const FoundPlan& plan, Planning& planning,
             const Report& row, Bytes budget) {
  const double link = link_of(planning.request, planning.comparison.scenario.device);
  planning.lower_bound = searches.lower_bound(budget.count, link, planning.joins_blocks);
  if (!plan.search->planner().is_of_stages(plan.point))
    planning.lower_bound = std::min(planning.lower_bound, row.step);
  planning.gap = static_cast<double>(row.step.count()) /
                     static_cast<double>(std::max<std::int64_t>(1, planning.lower_bound.count())) -
                 1;
}

// What the restriction to a form costs.
void compare_forms(const FoundPlan& plan, const PlanWatch& watch, Planning& planning) {
  planning.blocks = wrapped_blocks(plan.search->planner(), plan.point);
  if (planning.request.max_slowdown || is_stopped(watch)) return;
  PlanRequest of_tensors = planning.request;
  of_tensors.form = PlanForm::Tensors;
  const Comparison& comparison = planning.comparison;
  const PlanSearches searches(planning.trace, comparison.scenario.device, comparison.budget,
                              of_tensors, watch);
  if (const std::optional<FoundPlan> best = plan_for(searches, planning))
    planning.step_of_tensors = searches.report_of(*best).step;
}

bool allows(const std::vector<Allowed>& allowed, Allowed what) {
  return std::ranges::find(allowed, what) != allowed.end();
}

// With lanes for what ranks exchange, live bytes follow the device's clock, and no bound is known
// for them.
void refuse_meshes(const StepOptions& step, const PlanRequest& request) {
  const Mesh& mesh = step.mesh;
  if (mesh[Axis::Pipeline] > 1) refuse_for_stages(step, request);
  const std::optional<Sharding> sharing = sharing_of(step);
  if (sharing && (is_zero(sharing->kind) || sharing->kind == Sharding::Kind::Fsdp1))
    throw UsageError(
        fmt::format("plans are made for ranks that share with ddp, fsdp2 or megatron, not with {} "
                    "(compare takes strategies)",
                    to_text(*sharing)));
  if (replicas_of(mesh) > 1 && request.measure == Measure::Live)
    throw UsageError(
        "--measure live: what replicas exchange runs beside the step, and live bytes follow its "
        "clock (their plans are measured in allocated, reserved or planned)");
}

void refuse_compiled(const StepOptions& step) {
  if (!is_compiled(find_framework(step.framework))) return;
  throw UsageError(fmt::format(
      "--framework {}: torch.compile decides what such a step keeps, no plan does (take an eager "
      "framework, or capture a model whose blocks are compiled one by one)",
      step.framework));
}

Comparison vanilla_of(Scenario scenario) {
  scenario.budget = {};  // `fits` is about the device, the request's budget about its measure
  scenario.strategies = {parse_strategy(reference_strategy().name)};
  return compare_rows(scenario);
}

void describe(const PlanSearches& searches, const FoundPlan& plan, Planning& planning) {
  const Planner& planner = plan.search->planner();
  std::vector<Report>& rows = planning.comparison.rows;
  planning.front_size = planner.size();
  planning.rest = Bytes{planner.rest()};
  planning.planned = plan.search->step_at(plan.point);
  planning.planned.plan.strategy =
      title_of(planning) + (planning.planned.plan.overlap ? "+overlap" : "");
  rows.push_back(searches.report_of(plan));
  rows.back().strategy = planning.planned.plan.strategy;
  add_ratios(rows);
  const std::vector<Planner::Part> parts = plan.search->parts_at(plan.point);
  planning.groups = groups_of(planner, parts);
  planning.error = planner.error_at(plan.point);
  planning.joins_blocks =
      std::ranges::any_of(planning.groups, [](const PlanGroup& group) { return group.joined > 1; });
  certify(searches, plan, planning, rows.back(),
          planning.request.max_slowdown ? measured(rows.back(), planning.request.measure)
                                        : planning.budget);
  planning.binding = binding_of(planner, parts);
  const Planner::Tightest tightest = planner.tightest(parts);
  planning.loss_binds = tightest.stage && *tightest.stage + 1 == planner.stages().all.size();
}

/// Less of a difference is not worth an approximation.
constexpr double least_gain = 1e-3;

bool approximates(const FoundPlan& plan) {
  return plan.search->planner().error_at(plan.point).square() > 0;
}

// Plans of the request's class that change no gradient: taken where the best of the class is no
// better by more than a thousandth, and named beside it elsewhere.
void weigh_exact(const PlanSearches& exact, Planning& planning, std::optional<FoundPlan>& found) {
  const std::optional<FoundPlan> best = plan_for(exact, planning);
  if (!best) return;
  if (!found) {
    found = best;
    return;
  }
  const auto worth = [&](const FoundPlan& plan) {
    return static_cast<double>(planning.request.max_slowdown
                                   ? plan.search->bytes_of(plan.point).count
                                   : plan.search->time_of(plan.point).count());
  };
  if (worth(*best) * (1 - least_gain) <= worth(*found)) {
    found = best;
    return;
  }
  const Report report = exact.report_of(*best);
  planning.exact = {
      report.step, measured(report, planning.request.measure),
      std::ranges::none_of(groups_of(best->search->planner(), best->search->parts_at(best->point)),
                           [](const PlanGroup& group) { return is_changed(group); })};
}

// Of the smallest plan, where none keeps to the budget.
void note_budget(Planning& planning) {
  if (planning.request.max_slowdown) return;
  Report& row = planning.comparison.rows.back();
  row.over_budget = std::max(Bytes{}, measured(row, planning.request.measure) - planning.budget);
}

}  // namespace

std::string title_of(const Planning& planning) {
  if (planning.request.max_slowdown)
    return fmt::format("plan:+{:g}%", 100 * *planning.request.max_slowdown);
  if (!planning.request.budget) return "plan";
  return fmt::format("plan:{}", to_text(planning.budget));
}

void tell(const PlanWatch& watch, std::string_view what) {
  if (watch.tell) watch.tell(what);
}

bool is_stopped(const PlanWatch& watch) { return watch.is_stopped && watch.is_stopped(); }

std::string class_name(const std::vector<Allowed>& allowed) {
  const Allowed least = allows(allowed, Allowed::Anything) ? Allowed::Anything : Allowed::Exact;
  std::string text(to_string(least));
  for (const Named<Allowed>& each : allowances) {
    if (each.value == least || !allows(allowed, each.value)) continue;
    const bool is_beside = each.value == Allowed::Overlap || each.value == Allowed::Coupled;
    if (least == Allowed::Exact || is_beside) text.append(",").append(each.name);
  }
  return text;
}

bool may_offload(const PlanRequest& request) {
  return allows(request.allowed, Allowed::Offload) || allows(request.allowed, Allowed::Anything);
}

bool may_overlap(const PlanRequest& request) { return allows(request.allowed, Allowed::Overlap); }

bool may_couple(const PlanRequest& request) { return allows(request.allowed, Allowed::Coupled); }

bool may_reconstruct(const PlanRequest& request) {
  return may_couple(request) || allows(request.allowed, Allowed::Anything);
}

bool may_change_operators(const PlanRequest& request) {
  return allows(request.allowed, Allowed::Lossy) || allows(request.allowed, Allowed::Anything);
}

bool may_approximate(const PlanRequest& request) { return !code_bits_of(request).empty(); }

PlanRequest exactly(PlanRequest request) {
  std::vector<Allowed> allowed = {Allowed::Exact};
  if (may_offload(request)) allowed.push_back(Allowed::Offload);
  if (may_overlap(request)) allowed.push_back(Allowed::Overlap);
  request.allowed = std::move(allowed);
  request.max_gradient_error.reset();
  return request;
}

std::vector<int> code_bits_of(const PlanRequest& request) {
  if (allows(request.allowed, Allowed::Anything)) return {8, 4, 2};
  if (allows(request.allowed, Allowed::Lossy)) return {8};
  return {};
}

bool is_changed(const PlanGroup& group) {
  return !group.decided.empty() || !group.operators.empty();
}

std::optional<Nanoseconds> price_per_gib(const PlanGroup& group) {
  if (!is_changed(group) || group.saved <= Bytes{}) return std::nullopt;
  constexpr double gib = std::int64_t{1} << 30;
  return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(group.extra.count()) * gib /
                                               static_cast<double>(group.saved.count)));
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

Bytes most_measured(const std::vector<StagePlan>& stages, Measure measure) {
  Bytes most;
  for (const StagePlan& stage : stages) most = std::max(most, measured(stage.report, measure));
  return most;
}

Planning plan_within(const Scenario& scenario, const PlanRequest& request, const PlanWatch& asked) {
  refuse_meshes(scenario.step, request);
  refuse_compiled(scenario.step);
  Planning planning;
  planning.request = request;
  bool was_stopped = false;
  std::mutex asking;
  const PlanWatch watch = {[&](std::string_view what) {
                             const std::lock_guard lock(asking);
                             tell(asked, what);
                           },
                           [&] {
                             const std::lock_guard lock(asking);
                             was_stopped = was_stopped || is_stopped(asked);
                             return was_stopped;
                           }};
  planning.comparison = vanilla_of(scenario);
  Comparison& comparison = planning.comparison;
  planning.budget = request.budget.value_or(comparison.budget.capacity);

  if (scenario.step.mesh[Axis::Pipeline] > 1) {
    plan_stages(watch, planning);
    note_budget(planning);
    planning.is_stopped = was_stopped;
    return planning;
  }
  tell(watch, "plans of single blocks");
  const auto begin = std::chrono::steady_clock::now();
  planning.trace = trace_of(comparison.scenario);
  const PlanSearches searches(planning.trace, scenario.device, comparison.budget, request, watch);
  std::optional<FoundPlan> found = plan_for(searches, planning);
  std::optional<PlanSearches> exact;
  if (may_approximate(request) && request.form == PlanForm::Tensors && !is_stopped(watch) &&
      (!found || approximates(*found))) {
    exact.emplace(planning.trace, scenario.device, comparison.budget, exactly(request), watch);
    weigh_exact(*exact, planning, found);
  }
  planning.solve = std::chrono::steady_clock::now() - begin;

  planning.feasible = found.has_value();
  const FoundPlan plan = found ? *found : searches.smallest();
  describe(searches, plan, planning);
  note_budget(planning);
  if (request.form != PlanForm::Tensors) compare_forms(plan, watch, planning);
  planning.advice = advice_for(planning, watch);
  if (request.front_points > 0) planning.fronts = fronts_of(searches, planning, watch);
  if (request.lists_forms) planning.forms = emitted_forms(planning, watch);
  planning.is_stopped = was_stopped;
  return planning;
}

}  // namespace tidemark
