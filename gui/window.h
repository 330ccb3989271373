// The window on a screen: GLFW and OpenGL, and nowhere else.
#pragma once

#include <functional>

#include "gui/script.h"
#include "gui/stage.h"

namespace tidemark::gui {

/// No display, no OpenGL, or it went away: one line that says what would help.
class NoDisplay : public InputError {
 public:
  using InputError::InputError;
};

struct WindowOptions {
  PixelSize size;
  std::optional<float> scale = {};    ///< else the screen's own
  std::optional<Script> script = {};  ///< plays it at 60 frames a second of its own, then closes
  std::string screenshot = {};        ///< PNG of the last frame
  /// What the driver says about its context after each frame: 0 as long as it is alive. Unset: ask
  /// the driver itself. Tests lose a context by it, which no driver does on request.
  std::function<unsigned()> reset_status = {};
};

/// Until it is closed. Returns its last size.
PixelSize run_window(ViewModel& model, ViewState& view, const WindowOptions& options);

/// From any thread: a window that waits for events draws a frame.
void wake_window();

}  // namespace tidemark::gui
