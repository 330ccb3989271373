// Writes a PNG of three bytes a pixel by stb, at the level that suits flat colours.
#include "gui/drawing/image.h"

#include <stb_image_write.h>

#include "base/error.h"

namespace tidemark::gui {

std::string to_png(const Image& image) {
  std::string png;
  const auto append = [](void* text, void* data, int size) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data),
                                            static_cast<std::size_t>(size));
  };
  // Opaque, so three bytes a pixel; the level is the longest search for repetitions, and flat
  // colours have many.
  std::vector<std::uint8_t> rows;
  rows.reserve(image.pixels.size() * 3);
  for (const std::uint32_t pixel : image.pixels)
    for (const int shift : {0, 8, 16}) rows.push_back(static_cast<std::uint8_t>(pixel >> shift));
  stbi_write_png_compression_level = 32;
  CHECK(stbi_write_png_to_func(append, &png, image.width, image.height, 3, rows.data(),
                               image.width * 3) != 0);
  return png;
}

}  // namespace tidemark::gui
