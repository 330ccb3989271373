// Lists and menus that Escape closes, and facts in two columns.
#include "gui/drawing/widgets.h"

#include "gui/drawing/paint.h"
#include "gui/input.h"

namespace tidemark::gui {
namespace {

// Dear ImGui does so only while keys move the focus from widget to widget.
bool heeds_escape(bool is_open) {
  if (is_open && was_pressed(Key::Escape)) ImGui::CloseCurrentPopup();
  return is_open;
}

}  // namespace

bool begin_choice(const char* id, const std::string& now, ImGuiComboFlags flags) {
  return heeds_escape(ImGui::BeginCombo(id, now.c_str(), flags));
}

bool begin_menu(const char* id) { return heeds_escape(ImGui::BeginPopup(id)); }

void list_facts(std::span<const Fact> facts) {
  for (const Fact& fact : facts) {
    if (fact.name.empty()) {
      text_wrapped(fact.value, theme::bright);
      continue;
    }
    text_line(fact.name, theme::faint);
    ImGui::SameLine(8.2F * ImGui::GetFontSize());
    text_wrapped(fact.value);
  }
}

}  // namespace tidemark::gui
