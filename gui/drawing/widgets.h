// Widgets of Dear ImGui with the manners that it lacks.
#pragma once

#include <imgui.h>

#include <span>
#include <string>

#include "gui/facts.h"

namespace tidemark::gui {

/// A combo box that Escape closes, too. To be ended by ImGui::EndCombo() if it is open.
bool begin_choice(const char* id, const std::string& now, ImGuiComboFlags flags = 0);

/// Likewise a menu that ImGui::OpenPopup() opened; ended by ImGui::EndPopup().
bool begin_menu(const char* id);

/// Names at the left, values beside them.
void list_facts(std::span<const Fact> facts);

}  // namespace tidemark::gui
