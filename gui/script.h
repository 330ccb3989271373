// Hands that are written down: input by frame, for pictures and tests.
//   # frame verb arguments
//   3 mouse 640 200
//   4 down left
//   5 up left
//   6 press f           (down for one frame)
//   7 type mlp.fc1
#pragma once

#include <string_view>

#include "gui/input.h"

namespace tidemark::gui {

struct ScriptLine {
  enum class Verb : unsigned char { Mouse, Down, Up, Wheel, Press, Hold, Release, Type, Drop };

  int frame = 0;
  Verb verb = Verb::Mouse;
  float x = 0, y = 0;  ///< mouse: where to; wheel: x
  std::size_t button = 0;
  Key key = Key::Space;
  std::string text = {};
};

class Script {
 public:
  Script() = default;
  /// InputError names `file` and the line that is wrong.
  Script(std::string_view text, std::string_view file);

  /// Frames up to the last line, and one in which its effect can be seen.
  int frames() const;
  /// What hands do in this frame, given what they did before.
  void play(int frame, Input& input) const;

 private:
  std::vector<ScriptLine> lines_;  ///< by frame
};

}  // namespace tidemark::gui
