// The inputs of a step that have no slider, folded away until somebody wants them.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/panels/panels.h"
#include "gui/step_text.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

bool choose(const StepField& field, const std::vector<StepChoice>& choices, std::string& text) {
  const auto now = std::ranges::find(choices, text, &StepChoice::text);
  const std::string id = fmt::format("##{}", field.key);
  if (!begin_choice(id.c_str(), now == choices.end() ? text : now->shown)) return false;
  bool is_changed = false;
  for (const StepChoice& choice : choices)
    if (ImGui::Selectable(choice.shown.c_str(), choice.text == text))
      text = choice.text, is_changed = true;
  ImGui::EndCombo();
  return is_changed;
}

// Taken when the hands leave the field: half a word is no input.
bool type(const StepField& field, std::string& text) {
  ImGui::InputTextWithHint(fmt::format("##{}", field.key).c_str(), "default", &text);
  return ImGui::IsItemDeactivatedAfterEdit();
}

bool is_changed_by_hand(const StepField& field, std::string& text) {
  std::string title(field.key);
  std::ranges::replace(title, '_', ' ');
  text_line(title, theme::faint);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("%s", std::string(field.switches.front().help).c_str());
  ImGui::SetNextItemWidth(-1);
  const std::vector<StepChoice> choices = choices_of(field);
  return choices.empty() ? type(field, text) : choose(field, choices, text);
}

// What cannot be read is told, and the step stays.
bool draw_field(const StepField& field, StepOptions& step, ViewState& view) {
  std::string text = typed(field, step);
  if (!is_changed_by_hand(field, text)) return false;
  try {
    step = with_typed(field, step, text);
    return true;
  } catch (const InputError& error) {
    view.notice = error.what();
    return false;
  }
}

}  // namespace

bool draw_input(std::string_view key, StepOptions& step, ViewState& view) {
  for (const StepField& field : step_fields())
    if (field.key == key) return draw_field(field, step, view);
  return false;
}

bool draw_other_inputs(StepOptions& step, ViewState& view) {
  const auto fields = other_fields();
  const auto stated =
      std::ranges::count_if(fields, [&](const StepField* one) { return is_stated(*one, step); });
  const std::string title =
      stated == 0 ? "more inputs###more" : fmt::format("more inputs, {} set###more", stated);
  if (!ImGui::CollapsingHeader(title.c_str())) return false;
  bool is_changed = false;
  for (const StepField* field : fields) is_changed |= draw_field(*field, step, view);
  return is_changed;
}

}  // namespace tidemark::gui
