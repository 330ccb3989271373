// A picture in memory, and as a PNG file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::gui {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint32_t> pixels;  ///< row by row from the top; bytes red, green, blue, alpha

  bool operator==(const Image&) const = default;
};

std::string to_png(const Image& image);

}  // namespace tidemark::gui
