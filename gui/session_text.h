// A session as JSON (docs/gui.md, "Sessions").
#pragma once

#include <string>
#include <string_view>

#include "gui/session.h"

namespace tidemark::gui {

inline constexpr int session_version = 1;

std::string write_session_text(const Session& session);

/// Throws InputError with the place of what is wrong, and what would be right.
Session read_session_text(std::string_view text, std::string_view file);

}  // namespace tidemark::gui
