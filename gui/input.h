// What hands do in one frame: mouse, keys and text, from a window, a script or a test.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gui/keys.h"

struct ImGuiIO;

namespace tidemark::gui {

struct Input {
  float x = -1, y = -1;                 ///< of the mouse, in pixels; negative = outside
  std::array<bool, 3> buttons{};        ///< left, right, middle
  std::set<Key> keys = {};              ///< held down
  float wheel = 0;                      ///< turned in this frame; up is positive
  std::string text = {};                ///< typed in this frame
  std::vector<std::string> drops = {};  ///< files dropped in this frame

  /// The state of the next frame if nothing changes: what is held stays.
  void end_frame() { wheel = 0, text.clear(), drops.clear(); }
};

/// To be called before each frame, and after a window's own input if there is one.
void apply(const Input& input, ImGuiIO& io);

/// Tells Dear ImGui which of its editing keys are which.
void map_keys(ImGuiIO& io);

bool is_down(Key key);
/// In this frame; holding it is no second press.
bool was_pressed(Key key);
/// Pressed in this frame, or held long enough to count again.
bool repeats(Key key);
/// Was this letter or sign typed in this frame, by whatever key has it on this keyboard? Upper case
/// counts as lower case; what a held key types again does not count.
bool was_typed(char sign);
/// Likewise, and holding the key counts again.
bool repeats(char sign);

}  // namespace tidemark::gui
