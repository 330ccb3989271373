// What a user likes, kept from one window to the next.
#pragma once

#include <string>

#include "gui/stage.h"

namespace tidemark::gui {

/// $XDG_CONFIG_HOME/tidemark/view.json, or in ~/.config; "" if neither is known.
std::string settings_path();

/// Puts what the file says into the view. A missing file changes nothing; a broken one changes
/// nothing and is told in the view's notice.
void read_settings(const std::string& path, ViewState& view, PixelSize& window);

/// Makes the folder if needed. What cannot be written is not: settings are a comfort.
void write_settings(const std::string& path, const ViewState& view, PixelSize window);

}  // namespace tidemark::gui
