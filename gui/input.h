// What hands do in one frame: mouse, keys and text, from a window, a script or a test.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gui/keys.h"

struct ImGuiIO;

namespace tidemark {

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
bool was_pressed(Key key);

}  // namespace tidemark
