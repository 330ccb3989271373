// Hands an Input to Dear ImGui, types the characters of held keys and answers what was pressed.
#include "gui/input.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cfloat>

namespace tidemark::gui {
namespace {

// GLFW numbers the keys by the signs that they have on a US keyboard, which is what scripts and
// tests type on.
void type(Key key, const Input& input, ImGuiIO& io) {
  const int sign = static_cast<int>(key);
  if (sign > 127 || input.keys.contains(Key::Control)) return;
  const bool has_shift = input.keys.contains(Key::Shift);
  if (key == Key::Slash && has_shift) return io.AddInputCharacter('?');
  io.AddInputCharacter(static_cast<unsigned>(has_shift ? sign : std::tolower(sign)));
}

bool is_modifier(int key) { return key >= static_cast<int>(Key::Shift); }

// A key that is held types again and again, and only the first time it goes down.
bool is_typed_again() {
  const ImGuiIO& io = ImGui::GetIO();
  bool is_any_held = false;
  for (int key = 0; key < IM_ARRAYSIZE(io.KeysDown); ++key) {
    if (!io.KeysDown[key] || is_modifier(key)) continue;
    if (io.KeysDownDuration[key] <= 0) return false;
    is_any_held = true;
  }
  return is_any_held;
}

}  // namespace

void apply(const Input& input, ImGuiIO& io) {
  // Dear ImGui takes the largest negative number for "no mouse".
  const bool outside = input.x < 0 || input.y < 0;
  io.MousePos = outside ? ImVec2(-FLT_MAX, -FLT_MAX) : ImVec2(input.x, input.y);
  for (std::size_t b = 0; b < input.buttons.size(); ++b) io.MouseDown[b] = input.buttons[b];
  io.MouseWheel += input.wheel;
  // All of them, so that a key of the real keyboard does not disturb a script.
  io.ClearInputCharacters();
  for (int key = 0; key < IM_ARRAYSIZE(io.KeysDown); ++key) {
    const bool is_held = input.keys.contains(static_cast<Key>(key));
    if (is_held && !io.KeysDown[key]) type(static_cast<Key>(key), input, io);
    io.KeysDown[key] = is_held;
  }
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
bool was_pressed(Key key) { return ImGui::IsKeyPressed(static_cast<ImGuiKey>(key), false); }
bool repeats(Key key) { return ImGui::IsKeyPressed(static_cast<ImGuiKey>(key)); }

bool repeats(char sign) {
  const auto& typed = ImGui::GetIO().InputQueueCharacters;
  return std::any_of(typed.begin(), typed.end(), [&](ImWchar one) {
    return one < 128 && std::tolower(static_cast<int>(one)) == sign;
  });
}
bool was_typed(char sign) { return repeats(sign) && !is_typed_again(); }

}  // namespace tidemark::gui
