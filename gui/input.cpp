#include "gui/input.h"

#include <imgui.h>

#include <cfloat>

namespace tidemark {

void apply(const Input& input, ImGuiIO& io) {
  // Dear ImGui takes the largest negative number for "no mouse".
  const bool outside = input.x < 0 || input.y < 0;
  io.MousePos = outside ? ImVec2(-FLT_MAX, -FLT_MAX) : ImVec2(input.x, input.y);
  for (std::size_t b = 0; b < input.buttons.size(); ++b) io.MouseDown[b] = input.buttons[b];
  io.MouseWheel += input.wheel;
  // All of them, so that a key of the real keyboard does not disturb a script.
  for (int key = 0; key < IM_ARRAYSIZE(io.KeysDown); ++key) io.KeysDown[key] = false;
  for (const Key key : input.keys) io.KeysDown[static_cast<int>(key)] = true;
  io.KeyShift = input.keys.contains(Key::Shift);
  io.KeyCtrl = input.keys.contains(Key::Control);
  io.AddInputCharactersUTF8(input.text.c_str());
}

// Text fields ask for these by names of their own (Dear ImGui 1.86).
void map_keys(ImGuiIO& io) {
  const auto map = [&](ImGuiKey theirs, Key ours) { io.KeyMap[theirs] = static_cast<int>(ours); };
  map(ImGuiKey_Tab, Key::Tab), map(ImGuiKey_Escape, Key::Escape), map(ImGuiKey_Space, Key::Space);
  map(ImGuiKey_Enter, Key::Enter), map(ImGuiKey_Backspace, Key::Backspace);
  map(ImGuiKey_Insert, Key::Insert), map(ImGuiKey_Delete, Key::Delete);
  map(ImGuiKey_LeftArrow, Key::Left), map(ImGuiKey_RightArrow, Key::Right);
  map(ImGuiKey_UpArrow, Key::Up), map(ImGuiKey_DownArrow, Key::Down);
  map(ImGuiKey_PageUp, Key::PageUp), map(ImGuiKey_PageDown, Key::PageDown);
  map(ImGuiKey_Home, Key::Home), map(ImGuiKey_End, Key::End);
  map(ImGuiKey_A, Key::A), map(ImGuiKey_C, Key::C), map(ImGuiKey_V, Key::V);
  map(ImGuiKey_X, Key::X), map(ImGuiKey_Y, Key::Y), map(ImGuiKey_Z, Key::Z);
}

bool is_down(Key key) { return ImGui::IsKeyDown(static_cast<ImGuiKey>(key)); }
bool was_pressed(Key key) { return ImGui::IsKeyPressed(static_cast<ImGuiKey>(key)); }

}  // namespace tidemark
