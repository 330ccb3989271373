// The colours of categories and tasks, the same in every picture and window. The eight hues of
// Okabe and Ito (jfly.uni-koeln.de/color) are told apart by people with any form of colour
// blindness.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "simulator/schedule.h"

namespace tidemark {

struct Color {
  std::uint8_t red, green, blue;

  bool operator==(const Color&) const = default;
};

namespace palette {
inline constexpr Color blue{0x00, 0x72, 0xB2}, sky{0x56, 0xB4, 0xE9}, green{0x00, 0x9E, 0x73},
    yellow{0xF0, 0xE4, 0x42}, orange{0xE6, 0x9F, 0x00}, vermilion{0xD5, 0x5E, 0x00},
    purple{0xCC, 0x79, 0xA7}, grey{0x99, 0x99, 0x99};
}  // namespace palette

template <typename Enum>
struct Colored {
  Enum value;
  Color color;
};

inline constexpr std::array category_colors = {
    Colored<Category>{Category::Parameter, palette::blue},
    Colored<Category>{Category::Gradient, palette::orange},
    Colored<Category>{Category::OptimizerState, palette::purple},
    Colored<Category>{Category::Activation, palette::green},
    Colored<Category>{Category::Temporary, palette::vermilion},
    Colored<Category>{Category::Input, palette::sky},
    Colored<Category>{Category::Workspace, palette::yellow},
    Colored<Category>{Category::Unknown, palette::grey}};
static_assert(is_in_order(category_colors) && category_colors.size() == category_count);

/// What takes the same part in a step shares a hue: all recovery is purple or green.
inline constexpr std::array task_colors = {Colored<Task>{Task::Forward, palette::sky},
                                           Colored<Task>{Task::Seed, palette::grey},
                                           Colored<Task>{Task::Backward, palette::orange},
                                           Colored<Task>{Task::Accumulate, palette::yellow},
                                           Colored<Task>{Task::Recompute, palette::purple},
                                           Colored<Task>{Task::Reconstruct, palette::green},
                                           Colored<Task>{Task::Quantize, Color{0x8A, 0x6D, 0xB8}},
                                           Colored<Task>{Task::Dequantize, Color{0xB3, 0x9D, 0xDB}},
                                           Colored<Task>{Task::Optimizer, palette::blue}};
static_assert(is_in_order(task_colors) && task_colors.size() == tasks.size());

/// Of copies to and from the host.
inline constexpr Color copy_color = palette::vermilion;

constexpr Color color_of(Category category) {
  return category_colors[static_cast<std::size_t>(category)].color;
}
constexpr Color color_of(Task task) { return task_colors[static_cast<std::size_t>(task)].color; }

/// Black or white, whichever is easier to read on the colour (ITU-R BT.601 luma, in thousandths).
constexpr Color text_color_on(Color color) {
  const int luma = 299 * color.red + 587 * color.green + 114 * color.blue;
  return luma > 140'000 ? Color{0, 0, 0} : Color{255, 255, 255};
}

/// "#0072b2"
inline std::string hex(Color color) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t part : {color.red, color.green, color.blue})
    text.append(1, digits[part >> 4]).append(1, digits[part & 15]);
  return text;
}

}  // namespace tidemark
