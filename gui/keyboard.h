// What the keys do, outside of text fields.
#pragma once

#include <span>

#include "gui/model.h"

namespace tidemark::gui {

void use_keyboard(ViewModel& model, ViewState& view);

struct KeyHelp {
  std::string_view keys;
  std::string_view what;
};

/// Keys and mouse, as the help lists them.
std::span<const KeyHelp> key_help();

}  // namespace tidemark::gui
