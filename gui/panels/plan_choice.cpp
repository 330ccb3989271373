// A plan instead of a strategy: a slider along the front of budgets, and why it does what it does.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// As a slider's format: a sign of per cent stands twice.
std::string point_text(const PlannedPoint& point) {
  return fmt::format("{}, {:+.1f} %%", to_text(point.point.budget), 100 * (point.slowdown - 1));
}

bool is_possible(Allowed allowed, const Device& device) {
  return !may_offload({.allowed = {allowed}}) || device.host_link_bytes_per_second > 0;
}

bool choose_class(PlanChoice& choice, const Device& device) {
  text_line("a plan may", theme::faint);
  ImGui::SetNextItemWidth(-1);
  const auto name = [](Allowed allowed) { return std::string(to_string(allowed)); };
  if (!begin_choice("##allowed", name(choice.allowed))) return false;
  bool changed = false;
  for (const Named<Allowed>& each : allowances)
    if (is_possible(each.value, device) &&
        ImGui::Selectable(name(each.value).c_str(), choice.allowed == each.value))
      choice.allowed = each.value, changed = true;
  ImGui::EndCombo();
  return changed;
}

void slide_along(const PlannedFront& front, Bytes budget, ViewModel& model, ViewState& view) {
  std::size_t point = front.within(budget);
  const std::size_t first = 0, last = front.points.size() - 1;
  ImGui::SetNextItemWidth(-1);
  const bool moved =
      ImGui::SliderScalar("##along", ImGuiDataType_U64, &point, &first, &last,
                          point_text(front.points[point]).c_str(), ImGuiSliderFlags_AlwaysClamp);
  view.facts.plan_slider = (ImGui::GetItemRectMin().y + ImGui::GetItemRectMax().y) / 2;
  if (moved) model.move_along_front(front.points[std::min(point, last)].point.budget, view);
}

std::string name_of(const PlanGroup& group) {
  return group.first == group.last ? group.first : fmt::format("{} to {}", group.first, group.last);
}

void explain(const PlanGroup& group) {
  text_line(name_of(group), theme::bright);
  if (!is_changed(group)) return text_line("keep all", theme::faint);
  const auto price = price_per_gib(group);
  text_line(fmt::format("{} for {}{}", to_text(group.saved), to_text(group.extra),
                        price ? fmt::format(", {} per GiB", to_text(*price)) : ""),
            theme::faint);
  if (!group.operators.empty())
    text_wrapped(fmt::format("operators of {}", fmt::join(group.operators, ", ")));
  for (const PlanGroup::Decided& decided : group.decided)
    text_wrapped(fmt::format("{}: {}", action_text(decided), fmt::join(decided.tensors, ", ")));
}

void explain(const std::vector<PlanGroup>& groups) {
  if (groups.empty()) text_line("Everything is kept.");
  for (const PlanGroup& group : groups) explain(group);
}

void explain(const PlannedPoint& point) {
  if (!ImGui::TreeNode("why")) return;
  text_wrapped(fmt::format("Memory is tightest in the {}.", point.point.binding));
  if (point.point.stages.empty()) explain(point.point.groups);
  for (const StagePlan& stage : point.point.stages) {
    text_line(to_text(*stage.report.rank), theme::faint);
    explain(stage.groups);
  }
  ImGui::TreePop();
}

}  // namespace

bool draw_plan_choice(PlanChoice& choice, ViewModel& model, ViewState& view) {
  const bool changed = choose_class(choice, model.what_if()->scenario.device);
  text_line(model.planned().is_catching_up() ? "budget: planning ..." : "budget", theme::faint);
  const auto front = model.planned().newest();
  if (!front) return changed;
  slide_along(*front, choice.budget, model, view);
  explain(front->points[front->within(choice.budget)]);
  return changed;
}

}  // namespace tidemark::gui
