// The row above everything: which recordings, how they are colored, and what can be done with them.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/export.h"
#include "gui/panels/panels.h"
#include "gui/session.h"

namespace tidemark::gui {
namespace {

// Widths in letters, of windows: below the first, buttons have a row of their own; beyond the
// second there are some more of them.
constexpr float narrow_bar = 60, wide_bar = 72;

// What stands beside the two lists of recordings, in letters, with all that may be there: names of
// sides and usual buttons; those of wide windows; and the alignment of what is compared.
float beside_lists(float room, bool compares, float em) {
  constexpr float buttons = 28, more_buttons = 17, alignment = 7;
  return (buttons + (room > wide_bar * em ? more_buttons : 0) + (compares ? alignment : 0)) * em;
}

void choose_color(ViewState& view) {
  ImGui::AlignTextToFramePadding();
  text_line("Color", theme::faint);
  for (const auto& [value, name] : color_names) {
    ImGui::SameLine();
    if (ImGui::RadioButton(std::string(name).c_str(), view.color_by == value))
      view.color_by = value;
  }
}

// At the right of a line of the list: closes the recording.
void offer_to_close(std::size_t recording, ViewState& view) {
  const float width = text_width("close") + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SameLine(std::max(0.0F, ImGui::GetContentRegionMax().x - width));
  if (!ImGui::SmallButton("close")) return;
  view.closes = recording;
  ImGui::CloseCurrentPopup();
}

// A combo box of the opened recordings; `none` is offered if it is not empty.
std::optional<std::size_t> choose_recording(const char* label, const ViewModel& model,
                                            ViewState& view, std::optional<std::size_t> chosen,
                                            const char* none, float width) {
  const auto& recordings = model.recordings();
  const std::string now = chosen ? recordings[*chosen].name : std::string(none);
  ImGui::SetNextItemWidth(width);
  const ImGuiStyle& style = ImGui::GetStyle();
  const float room = width - ImGui::GetFrameHeight() - 2 * style.FramePadding.x;
  if (!begin_choice(label, fitted(now, room))) return chosen;
  if (none[0] != '\0' && ImGui::Selectable(none, !chosen)) chosen.reset();
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::Selectable(recordings[i].name.c_str(), chosen == i,
                          ImGuiSelectableFlags_AllowItemOverlap))
      chosen = i;
    if (model.can_close(i)) offer_to_close(i, view);
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return chosen;
}

void export_menu(const ViewModel& model, ViewState& view) {
  if (ImGui::Button("Export")) ImGui::OpenPopup("export");
  if (!begin_menu("export")) return;
  const std::string stem = file_stem(model.shown(view)->recording);
  for (const char* ending : {".png", ".svg", ".chrome.json", ".timeline.json.zst"})
    if (const std::string name = stem + ending; ImGui::MenuItem(name.c_str()))
      view.wants_export = name;
  if (!view.notes.empty())
    if (const std::string name = stem + ".notes.md"; ImGui::MenuItem(name.c_str()))
      view.wants_export = name;
  ImGui::Separator();
  if (ImGui::MenuItem("session ...", "Ctrl + S")) save_session(model, view);
  text_line("into the folder that tidemark was started in; no file is replaced", theme::faint);
  ImGui::EndPopup();
}

// What the curve stacks, and what it leaves out.
void curve_menu(const Opened& opened, ViewState& view) {
  if (ImGui::Button("Curve")) ImGui::OpenPopup("curve");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("what the curve stacks, and what it leaves out");
  if (!begin_menu("curve")) return;
  for (const auto& [value, name] : curve_names)
    if (ImGui::RadioButton(fmt::format("by {}", name).c_str(), view.curve.by == value))
      view.curve.by = value;
  ImGui::Separator();
  bool shows = !view.curve.hides_persistent;
  if (ImGui::Checkbox("what is persistent", &shows)) view.curve.hides_persistent = !shows;
  for (const auto& [category, color] : category_colors) {
    if (!opened.has(category)) continue;
    const auto c = static_cast<std::size_t>(category);
    bool is_shown = !view.curve.hidden[c];
    const std::string name(to_string(category));
    if (ImGui::Checkbox(name.c_str(), &is_shown)) view.curve.hidden[c] = !is_shown;
  }
  ImGui::EndPopup();
}

// Before a combo box: as the lanes and curves are called while two are compared.
void name_side(const char* name) {
  ImGui::AlignTextToFramePadding();
  text_line(name, theme::faint);
  ImGui::SameLine();
}

void choose_alignment(ViewState& view) {
  ImGui::Checkbox("by phase", &view.aligns_phases);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "each phase of B as wide as that of A, so that the same work stands below\n"
        "each other (L)");
  ImGui::SameLine();
}

// A button that is there, and faint, also while it can do nothing.
bool arrow_button(const char* text, bool is_possible, const char* tooltip) {
  ImGui::BeginDisabled(!is_possible);
  const bool is_pressed = ImGui::Button(text);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) ImGui::SetTooltip("%s", tooltip);
  return is_pressed;
}

void draw_history(ViewModel& model, ViewState& view) {
  if (arrow_button("↶", model.can_undo(),
                   "take back the last change of an input or note (Ctrl + Z)"))
    model.undo(view);
  ImGui::SameLine(0, 3);
  if (arrow_button("↷", model.can_redo(), "make it again (Ctrl + Y)")) model.redo(view);
  ImGui::SameLine();
}

void draw_buttons(ViewModel& model, ViewState& view, float room, float em) {
  if (model.what_if() || model.can_undo() || model.can_redo()) draw_history(model, view);
  if (ImGui::Button("Keep")) model.keep(view);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("keep this one as it is, to compare what-ifs with it");
  if (room > wide_bar * em) {
    ImGui::SameLine(0, 1.2F * em);
    choose_color(view);
  }
  ImGui::SameLine(0, 1.2F * em);
  curve_menu(*model.shown(view), view);
  ImGui::SameLine();
  if (ImGui::Button("Fit")) fit(view);
  ImGui::SameLine();
  if (ImGui::Button("Search")) view.shows_search = view.focuses_search = true;
  ImGui::SameLine();
  export_menu(model, view);
  if (model.what_if() && room > wide_bar * em) {
    ImGui::SameLine();
    if (ImGui::Button("What if")) view.shows_what_if = !view.shows_what_if;
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip(view.shows_what_if ? "move the inputs into a tab below"
                                           : "show the inputs at the side");
  }
  ImGui::SameLine();
  if (ImGui::Button("?")) view.shows_help = !view.shows_help;
}

}  // namespace

void draw_top_bar(ViewModel& model, ViewState& view) {
  const float em = ImGui::GetFontSize();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool is_narrow = room < narrow_bar * em;  // then buttons have a row of their own
  const bool compares = model.against(view) != nullptr;
  const float share = is_narrow ? 0.4F : compares ? 0.21F : 0.25F;
  const float left = is_narrow ? room : (room - beside_lists(room, compares, em)) / 2;
  const float combo = std::clamp(std::min(share * room, left), 6 * em, 30 * em);
  if (compares) name_side("A");
  if (const auto shown = choose_recording("##shown", model, view, view.shown, "", combo);
      *shown != view.shown) {
    view.shown = *shown;
    show_all(*model.shown(view), view);
  }
  ImGui::SameLine();
  name_side(compares ? "B" : "vs");
  view.against =
      choose_recording("##against", model, view, view.against, "compare with nothing", combo);
  if (!is_narrow) ImGui::SameLine();
  if (compares) choose_alignment(view);
  draw_buttons(model, view, room, em);
}

}  // namespace tidemark::gui
