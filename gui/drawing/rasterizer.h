// Draws what Dear ImGui wants drawn with nothing but the processor: pictures on machines without a
// display, the same to the byte wherever they are made.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/drawing/image.h"

struct ImDrawData;

namespace tidemark::gui {

/// The one texture that there is: the coverage of glyphs and line edges.
struct CoverageTexture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> coverage;
};

/// Onto a ground of one colour (0xAABBGGRR, as Dear ImGui has it).
Image rasterize(const ImDrawData& data, const CoverageTexture& texture, std::uint32_t ground);

}  // namespace tidemark::gui
