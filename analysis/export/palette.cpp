// Contrast of colours, and which of black and white is easier to read on one.
#include "analysis/export/palette.h"

#include <algorithm>
#include <cmath>

namespace tidemark {
namespace {

// The light that each part of an sRGB colour stands for, 0 to 1 (IEC 61966-2-1). A table: the
// window asks for thousands of labels in each frame.
std::array<double, 256> make_light() {
  std::array<double, 256> light{};
  for (std::size_t part = 0; part < light.size(); ++part) {
    const double share = static_cast<double>(part) / 255;
    light[part] = share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  }
  return light;
}

double luminance(Color color) {
  static const std::array<double, 256> light = make_light();
  return 0.2126 * light[color.red] + 0.7152 * light[color.green] + 0.0722 * light[color.blue];
}

}  // namespace

double contrast(Color a, Color b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

Color text_color_on(Color color) {
  constexpr Color black{0, 0, 0}, white{255, 255, 255};
  return contrast(color, black) >= contrast(color, white) ? black : white;
}

}  // namespace tidemark
