// What a user likes as JSON: the text of the settings' file.
#pragma once

#include <string>
#include <string_view>

#include "gui/stage.h"

namespace tidemark::gui {

std::string write_settings_text(const ViewState& view, PixelSize window);

/// Puts what the text says into the view, or throws InputError and changes nothing.
void read_settings_text(std::string_view text, std::string_view file, ViewState& view,
                        PixelSize& window);

}  // namespace tidemark::gui
