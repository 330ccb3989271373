// What is open: each with its numbers, to be shown, compared and closed.
#include <fmt/format.h>

#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// "A" and "B" of what is drawn; "" of the rest.
std::string side_of(std::size_t recording, const ViewState& view) {
  if (recording == view.shown) return "A";
  return view.against == recording ? "B" : "";
}

std::string_view origin_of(std::size_t recording, const ViewModel& model) {
  const OpenRecording& one = model.recordings()[recording];
  if (!one.path.empty()) return one.path;
  return model.is_prediction(recording) ? "predicted from the inputs" : "kept";
}

void draw_actions(std::size_t recording, const ViewModel& model, ViewState& view) {
  ImGui::TableNextColumn();
  ImGui::BeginDisabled(recording == view.shown);
  const bool is_compared = view.against == recording;
  if (ImGui::SmallButton(is_compared ? "leave" : "compare")) {
    if (is_compared) {
      view.against.reset();
    } else {
      view.against = recording;
    }
  }
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!model.can_close(recording));
  if (ImGui::SmallButton("close")) view.closes = recording;
  ImGui::EndDisabled();
}

void draw_recording(std::size_t i, const ViewModel& model, ViewState& view) {
  const OpenRecording& one = model.recordings()[i];
  const Opened& opened = *one.opened;
  ImGui::PushID(static_cast<int>(i));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (view.facts.recordings++ == 0) view.facts.first_recording = ImGui::GetCursorScreenPos().y;
  // The name stands in its own column, so that it can end in dots.
  if (ImGui::Selectable(
          ("##" + one.name).c_str(), i == view.shown,
          ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowItemOverlap) &&
      i != view.shown) {
    if (view.against == i) view.against = view.shown;
    model.show(i, view);
  }
  ImGui::SameLine(0, 0);
  text_line(side_of(i, view), theme::accent);
  text_cell(one.name);
  number_cell(to_text(opened.memory().total_of(opened.peak())));
  number_cell(to_text(opened.timeline().duration));
  text_cell(origin_of(i, model), theme::faint);
  draw_actions(i, model, view);
  ImGui::PopID();
}

}  // namespace

void draw_recordings(const ViewModel& model, ViewState& view) {
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("recordings", 6, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, em);
  ImGui::TableSetupColumn("recording", ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableSetupColumn("live at most", ImGuiTableColumnFlags_WidthFixed, 6 * em);
  ImGui::TableSetupColumn("step", ImGuiTableColumnFlags_WidthFixed, 5 * em);
  ImGui::TableSetupColumn("from", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 9 * em);
  ImGui::TableHeadersRow();
  for (std::size_t i = 0; i < model.recordings().size(); ++i) draw_recording(i, model, view);
  ImGui::EndTable();
}

}  // namespace tidemark::gui
