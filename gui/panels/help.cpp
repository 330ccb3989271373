// What hands can do, and what the picture means.
#include <algorithm>

#include "gui/keyboard.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {

void draw_help(ViewState& view) {
  const float em = ImGui::GetFontSize();
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(46 * em, window.x - 2 * em);
  const float height = std::min(36 * em, window.y - 2 * em);
  ImGui::SetNextWindowPos({(window.x - width) / 2, (window.y - height) / 2});
  ImGui::SetNextWindowSize({width, height});
  ImGui::SetNextWindowFocus();
  ImGui::Begin("Help", &view.shows_help,
               ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove);
  for (const KeyHelp& row : key_help()) {
    text_line(row.keys, theme::accent);
    ImGui::SameLine(15 * em);
    text_line(row.what);
  }
  ImGui::Separator();
  text_wrapped(
      "Lanes: runs narrower than a few pixels are folded into one cell. It has the color of the "
      "longest of them and is as bright as the cell is busy; the tooltip counts them. A colored "
      "lower edge marks what is recomputed, reconstructed or quantized.",
      theme::faint);
  text_wrapped(
      "Memory: each pixel column shows the moment of most live bytes in it, with the categories of "
      "that very moment. The stack adds up, and a peak of one event is never hidden.",
      theme::faint);
  ImGui::End();
}

}  // namespace tidemark::gui
