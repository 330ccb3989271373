// One frame of the whole window: who gets which place.
#pragma once

#include "gui/model.h"

namespace tidemark::gui {

/// Between ImGui::NewFrame() and ImGui::Render().
void draw_frame(ViewModel& model, ViewState& view);

}  // namespace tidemark::gui
