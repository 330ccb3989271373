// A plan as JSON: what was asked, what was found, its certificate, the front and the decisions.
#include <algorithm>
#include <cmath>

#include "cli/reports/comparison_fields.h"
#include "cli/reports/json_text.h"
#include "cli/reports/print_planning.h"

namespace tidemark::cli {
namespace {

template <typename List, typename Print>
Json list_json(const List& list, Print print) {
  Json json = Json::array();
  for (const auto& each : list) json.push_back(print(each));
  return json;
}

Json error_json(const GradientError& error) {
  return std::isfinite(error.square()) ? Json(error.overall()) : Json();
}

Json exact_json(const std::optional<Planning::Exact>& exact) {
  if (!exact) return {};
  return {{"step_ns", exact->step.count()},
          {"measured_bytes", exact->measured.count},
          {"keeps_all", exact->keeps_all}};
}

Json group_json(const PlanGroup& group) {
  Json decisions = Json::array();
  for (const PlanGroup::Decided& decided : group.decided)
    decisions.push_back({{"action", to_string(decided.action)},
                         {"bits", decided.bits == 0 ? Json() : Json(decided.bits)},
                         {"delayed", decided.delayed},
                         {"tensors", decided.tensors},
                         {"bytes", decided.bytes.count}});
  const std::optional<Nanoseconds> price = price_per_gib(group);
  return {{"first", group.first},
          {"last", group.last},
          {"blocks", group.is_block ? group.stages : 0},
          {"joined", group.joined},
          {"operators", group.operators},
          {"decisions", std::move(decisions)},
          {"calls", group.calls},
          {"gradient_error", error_json(group.error)},
          {"bytes", group.saved.count},
          {"ns", group.extra.count()},
          {"ns_per_gib", price ? Json(price->count()) : Json()}};
}

Json operators_json(const PlannedStep& planned) {
  return list_json(planned.rewrites, [](const auto& each) { return Json(each.row->name); });
}

Json point_json(const FrontPoint& point) {
  return {{"budget_bytes", point.budget.count},
          {"allocated_peak_bytes", point.report.allocated_peak.count},
          {"reserved_peak_bytes", point.report.reserved_peak.count},
          {"step_ns", point.report.step.count()},
          {"gradient_error", error_json(point.error)},
          {"overlap", point.planned.plan.overlap},
          {"operators", operators_json(point.planned)}};
}

Json front_json(const PlanFront& front) {
  return {{"class", class_name(front.allowed)}, {"front", list_json(front.points, point_json)}};
}

Json form_json(const EmittedForm& form) {
  const bool is_found = !form.paste.empty();
  return {{"form", form.name},
          {"paste", is_found ? Json(form.paste) : Json()},
          {"allocated_peak_bytes", is_found ? Json(form.allocated.count) : Json()},
          {"step_ns", is_found ? Json(form.step.count()) : Json()}};
}

Json advice_json(const Advice& advice) {
  return {{"option", advice.option},
          {"allocated_peak_bytes", advice.allocated.count},
          {"step_ns", advice.step.count()},
          {"feasible", advice.is_feasible},
          {"fits", advice.fits}};
}

Json stage_json(const StagePlan& stage) {
  return {{"rank", to_text(*stage.report.rank)},
          {"in_flight", stage.in_flight},
          {"feasible", stage.is_feasible},
          {"fits", stage.report.fits},
          {"allocated_peak_bytes", stage.report.allocated_peak.count},
          {"reserved_peak_bytes", stage.report.reserved_peak.count},
          {"planned_bytes", stage.report.planned.count},
          {"live_peak_bytes", stage.report.live_peak.count},
          {"bubble_ns", stage.report.bubble.count()},
          {"recompute_ns", stage.report.recovery.alone.count()},
          {"lower_bound_ns", stage.is_feasible ? Json(stage.lower_bound.count()) : Json()},
          {"binding", stage.binding},
          {"rest_bytes", stage.rest.count},
          {"front_size", stage.front_size},
          {"groups", list_json(stage.groups, group_json)}};
}

}  // namespace

std::string planning_json(const Planning& planning) {
  const Report& vanilla = planning.comparison.rows.front();
  const Report& row = planning.comparison.rows.back();
  Json json = inputs_json("tidemark-plan-1", planning.comparison);
  json["budget_bytes"] = planning.request.max_slowdown ? Json() : Json(planning.budget.count);
  json["max_slowdown"] = to_json(planning.request.max_slowdown);
  json["max_gradient_error"] = to_json(planning.request.max_gradient_error);
  json["measure"] = to_string(planning.request.measure);
  json["form"] = plan_forms[static_cast<std::size_t>(planning.request.form)].name;
  json["feasible"] = planning.feasible;
  json["class"] = class_name(planning.request.allowed);
  json["host_budget_bytes"] =
      planning.request.host_budget ? Json(planning.request.host_budget->count) : Json();
  json["overlap"] = planning.planned.plan.overlap;
  json["operators"] = operators_json(planning.planned);
  json["gradient_error"] = error_json(planning.error);
  json["gradient_error_of_codes"] = error_json({.codes = planning.error.codes});
  json["gradient_error_of_operators"] = error_json({.operators = planning.error.operators});
  json["exact"] = exact_json(planning.exact);
  json["over_budget_bytes"] = planning.request.max_slowdown ? Json() : Json(row.over_budget.count);
  json["fits"] = row.fits;
  json["allocated_peak_bytes"] = row.allocated_peak.count;
  json["reserved_peak_bytes"] = row.reserved_peak.count;
  json["planned_bytes"] = row.planned.count;
  json["live_peak_bytes"] = row.live_peak.count;
  json["pinned_bytes"] = row.pinned.count;
  json["step_ns"] = row.step.count();
  json["vanilla_step_ns"] = vanilla.step.count();
  json["lower_bound_ns"] = planning.feasible ? Json(planning.lower_bound.count()) : Json();
  json["gap"] = planning.feasible ? Json(planning.gap) : Json();
  json["binding"] = planning.binding;
  json["rest_bytes"] = planning.rest.count;
  json["solve_ns"] = planning.solve.count();
  json["front_size"] = planning.front_size;
  json["stopped"] = planning.is_stopped;
  json["front"] = planning.fronts.empty() ? Json::array()
                                          : list_json(planning.fronts.back().points, point_json);
  json["fronts"] = list_json(planning.fronts, front_json);
  json["forms"] = list_json(planning.forms, form_json);
  json["groups"] = list_json(planning.groups, group_json);
  json["stages"] = list_json(planning.stages, stage_json);
  json["tensors_step_ns"] =
      planning.step_of_tensors ? Json(planning.step_of_tensors->count()) : Json();
  json["advice"] = list_json(planning.advice, advice_json);
  json["rows"] = list_json(planning.comparison.rows, row_json);
  return document_text(json);
}

}  // namespace tidemark::cli
