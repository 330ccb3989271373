// Where a session is to be kept, and what to do where a file is already.
#include <algorithm>

#include "gui/export.h"
#include "gui/panels/panels.h"
#include "gui/session.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

void keep_in(std::string path, ViewState& view) {
  if (!path.ends_with(session_ending)) path += session_ending;
  view.saving->name = path;
  view.wants_session = std::move(path);
}

void offer_other_ways(ViewState& view) {
  text_wrapped("A file of this name is there, and not as this window left it.", theme::alarm);
  if (ImGui::Button("Replace it")) {
    view.replaces_session = true;
    keep_in(view.saving->name, view);
  }
  ImGui::SameLine();
  const std::string other = free_path(view.saving->name);
  if (ImGui::Button(("Save as " + other).c_str())) keep_in(other, view);
}

}  // namespace

void draw_saving(ViewState& view) {
  const float em = ImGui::GetFontSize();
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(44 * em, window.x - 2 * em);
  ImGui::SetNextWindowPos({(window.x - width) / 2, 6 * em});
  ImGui::SetNextWindowSize({width, 0});
  bool is_open = true;
  ImGui::Begin("Save the session", &is_open,
               ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove);
  if (view.focuses_saving) ImGui::SetKeyboardFocusHere();
  view.focuses_saving = false;
  ImGui::SetNextItemWidth(-1);
  const std::string before = view.saving->name;
  if (ImGui::InputText("##name", &view.saving->name, ImGuiInputTextFlags_EnterReturnsTrue) &&
      !view.saving->name.empty())
    keep_in(view.saving->name, view);
  if (view.saving->name != before) view.saving->is_refused = false;
  text_line("inputs, files, the view and notes; Enter saves, Esc does not", theme::faint);
  if (view.saving->is_refused) offer_other_ways(view);
  ImGui::End();
  if (!is_open) view.saving.reset();
}

}  // namespace tidemark::gui
