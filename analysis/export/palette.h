// The colours of data, the same in every picture, report and window: one palette for categories of
// memory, one for tasks and copies, one for classes of op kinds, one for the lines of strategies,
// and one for verdicts. No colour has two meanings in one picture. Neighbours in a legend or a
// stack stay apart for people who see no green, and no red; tests/export/palette_test.cpp measures
// how far.
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

template <typename Enum>
struct Colored {
  Enum value;
  Color color;
};

inline constexpr std::array category_colors = {
    Colored<Category>{Category::Parameter, {0x10, 0x80, 0xC6}},
    Colored<Category>{Category::Gradient, {0xD3, 0x8D, 0x00}},
    Colored<Category>{Category::OptimizerState, {0x4F, 0x2C, 0x6B}},
    Colored<Category>{Category::Activation, {0x63, 0xE6, 0xA4}},
    Colored<Category>{Category::Temporary, {0xDB, 0x2A, 0x0D}},
    Colored<Category>{Category::Input, {0x00, 0xAC, 0xFD}},
    Colored<Category>{Category::Workspace, {0x78, 0x6B, 0x5E}},
    Colored<Category>{Category::Communication, {0x4C, 0x1A, 0x34}},
    Colored<Category>{Category::Unknown, {0xAB, 0xB0, 0xBB}}};
static_assert(is_in_order(category_colors) && category_colors.size() == category_count);

inline constexpr std::array task_colors = {Colored<Task>{Task::Forward, {0xA2, 0xCE, 0xEE}},
                                           Colored<Task>{Task::Seed, {0x6E, 0x75, 0x84}},
                                           Colored<Task>{Task::Backward, {0xFE, 0xBD, 0x43}},
                                           Colored<Task>{Task::WeightGradient, {0x00, 0x4B, 0x64}},
                                           Colored<Task>{Task::Accumulate, {0x8C, 0x5A, 0x1E}},
                                           Colored<Task>{Task::Recompute, {0xE0, 0x7E, 0xA0}},
                                           Colored<Task>{Task::Reconstruct, {0x22, 0x6D, 0x65}},
                                           Colored<Task>{Task::Quantize, {0xBE, 0xA3, 0xFB}},
                                           Colored<Task>{Task::Dequantize, {0x5D, 0x47, 0xAF}},
                                           Colored<Task>{Task::Optimizer, {0x9C, 0xB6, 0x92}},
                                           Colored<Task>{Task::Pack, {0x0A, 0x17, 0x7C}},
                                           Colored<Task>{Task::AllReduce, {0xD6, 0xC6, 0xC2}},
                                           Colored<Task>{Task::AllGather, {0x45, 0xA4, 0x65}},
                                           Colored<Task>{Task::ReduceScatter, {0xEA, 0x2D, 0xC3}}};
static_assert(is_in_order(task_colors) && task_colors.size() == tasks.size());

/// Of copies to and from the host; in legends it follows the tasks.
inline constexpr Color copy_color{0x9D, 0x1B, 0x54};

/// Of classes of op kinds, in the order of their legend (gui/drawing/kind_class.h); the last is the
/// optimizer's.
inline constexpr std::array<Color, 9> kind_colors = {{{0x55, 0x6C, 0xDD},
                                                      {0xDC, 0x8E, 0x87},
                                                      {0x27, 0x7D, 0x40},
                                                      {0xDC, 0xCB, 0x00},
                                                      {0xA5, 0x3C, 0x92},
                                                      {0x92, 0xD5, 0xC3},
                                                      {0x8A, 0x2F, 0x22},
                                                      {0x80, 0x88, 0x80},
                                                      {0x86, 0xA2, 0xD2}}};

/// Of lines, one per strategy; thin lines can be seen on white and on black.
inline constexpr std::array<Color, 8> line_colors = {{{0x08, 0x73, 0xFC},
                                                      {0xAE, 0x69, 0x00},
                                                      {0x00, 0x7C, 0x69},
                                                      {0xF7, 0x5B, 0x98},
                                                      {0x5F, 0x57, 0xC8},
                                                      {0x99, 0x99, 0x00},
                                                      {0x9C, 0x51, 0x48},
                                                      {0x83, 0x8A, 0x95}}};

/// What is said about a strategy or a change.
namespace verdict {
inline constexpr Color best{0x08, 0x73, 0xFC}, beaten{0x83, 0x8A, 0x95},
    too_large{0xD1, 0x5A, 0x00}, better{0x00, 0x7C, 0x69}, worse{0xD1, 0x5A, 0x00};
}  // namespace verdict

constexpr Color color_of(Category category) {
  return category_colors[static_cast<std::size_t>(category)].color;
}
constexpr Color color_of(Task task) { return task_colors[static_cast<std::size_t>(task)].color; }

/// From 1 (the same) to 21 (black on white), as the Web Content Accessibility Guidelines 2.2 define
/// it; they ask for 4.5 of text and 3 of lines.
double contrast(Color a, Color b);

/// Black or white, whichever has more contrast on the colour: at least 4.5.
Color text_color_on(Color color);

/// "#0072b2"
inline std::string hex(Color color) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t part : {color.red, color.green, color.blue})
    text.append(1, digits[part >> 4]).append(1, digits[part & 15]);
  return text;
}

}  // namespace tidemark
