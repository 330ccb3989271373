// The palettes, measured: what lies side by side looks different to everybody, no colour of a
// picture has two meanings, and text on each can be read. Differences are CIEDE2000.
#include "analysis/export/palette.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "tests/export/color_vision.h"

namespace tidemark::exports::palette_test {
namespace {

using Palette = std::vector<Color>;

Palette category_palette() {
  Palette colors;
  for (const auto& row : category_colors) colors.push_back(row.color);
  return colors;
}

// As in a legend: copies follow the tasks.
Palette task_palette() {
  Palette colors;
  for (const auto& row : task_colors) colors.push_back(row.color);
  colors.push_back(copy_color);
  return colors;
}

Palette kind_palette() { return {kind_colors.begin(), kind_colors.end()}; }
Palette line_palette() { return {line_colors.begin(), line_colors.end()}; }
Palette verdict_palette() { return {verdict::best, verdict::beaten, verdict::too_large}; }
Palette change_palette() { return {verdict::better, verdict::worse}; }

std::vector<Palette> all_palettes() {
  return {category_palette(), task_palette(),    kind_palette(),
          line_palette(),     verdict_palette(), change_palette()};
}

// What side by side is told apart at a glance.
constexpr double clear = 20;

// What else is seen as two colours when it lies side by side: as far as of palettes that are drawn
// in one picture.
constexpr double apart = 12;

void expect_clear(Color x, Color y) {
  EXPECT_GE(difference(x, y, Vision::Full), clear) << hex(x) << " " << hex(y);
  EXPECT_GE(difference(x, y, Vision::NoGreen), clear) << hex(x) << " " << hex(y);
}

// Pairs of the paper's table: blue, where the formula turns; nearly grey; far apart; dark.
TEST(ColorVision, DiffersAsThePublishedPairsDo) {
  struct Pair {
    Lab x, y;
    double difference;
  };
  for (const Pair& pair :
       {Pair{{50, 2.6772, -79.7751}, {50, 0, -82.7485}, 2.0425},
        Pair{{50, 3.1571, -77.2803}, {50, 0, -82.7485}, 2.8615},
        Pair{{50, -1.3802, -84.2814}, {50, 0, -82.7485}, 1.0},
        Pair{{50, 0, 0}, {50, -1, 2}, 2.3669}, Pair{{50, 2.5, 0}, {73, 25, -18}, 27.1492},
        Pair{{50, 2.5, 0}, {61, -5, 29}, 22.8977}, Pair{{50, 2.5, 0}, {56, -27, -3}, 31.9030},
        Pair{{50, 2.5, 0}, {58, 24, 15}, 19.4535},
        Pair{{2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}, 0.9082}}) {
    EXPECT_NEAR(difference(pair.x, pair.y), pair.difference, 5e-5);
    EXPECT_NEAR(difference(pair.y, pair.x), pair.difference, 5e-5);
  }
}

TEST(ColorVision, LeavesGreyGreyAndMakesRedAndGreenAlike) {
  const Color grey{128, 128, 128}, red{0xB0, 0x50, 0x50}, green{0x70, 0x80, 0x40};
  for (const Vision vision : {Vision::NoRed, Vision::NoGreen, Vision::NoBlue})
    EXPECT_LT(difference(lab_of(light_of(grey)), lab_of(seen(light_of(grey), vision))), 0.1);
  EXPECT_LT(difference(red, green, Vision::NoGreen), difference(red, green, Vision::Full) / 2);
}

TEST(Palette, NeighboursInALegendAreClearWithoutGreen) {
  for (const Palette& colors : all_palettes())
    for (std::size_t i = 1; i < colors.size(); ++i) expect_clear(colors[i - 1], colors[i]);
}

TEST(Palette, NeighboursInALegendStayApartWhateverColorIsNotSeen) {
  for (const Vision vision : {Vision::NoRed, Vision::NoGreen, Vision::NoBlue})
    for (const Palette& colors : all_palettes())
      for (std::size_t i = 1; i < colors.size(); ++i)
        EXPECT_GE(difference(colors[i - 1], colors[i], vision), apart)
            << hex(colors[i - 1]) << " " << hex(colors[i]);
}

// Layers that are empty for a while bring others together: there are no gradients in the forward
// pass, and of temporaries, inputs and workspace any may be missing.
TEST(Palette, LayersThatMayTouchInAStackAreClearWithoutGreen) {
  const Palette colors = category_palette();
  const auto activation = static_cast<std::size_t>(Category::Activation);
  for (std::size_t i = 0; i < colors.size(); ++i)
    for (std::size_t k = i + 1; k < colors.size(); ++k)
      if (k - i <= 2 || i >= activation) expect_clear(colors[i], colors[k]);
}

TEST(Palette, WhatRunsNextToTheBackwardIsClearWithoutGreen) {
  for (const auto& row : task_colors)
    if (row.value != Task::Backward) expect_clear(row.color, color_of(Task::Backward));
  expect_clear(copy_color, color_of(Task::Backward));
  expect_clear(color_of(Task::Forward), color_of(Task::Recompute));
}

TEST(Palette, ColorsOfOnePaletteAreNeverMistakenForEachOther) {
  for (const Palette& colors : all_palettes())
    for (std::size_t i = 0; i < colors.size(); ++i)
      for (std::size_t k = i + 1; k < colors.size(); ++k) {
        EXPECT_GE(difference(colors[i], colors[k], Vision::Full), 14) << hex(colors[i]);
        EXPECT_GE(difference(colors[i], colors[k], Vision::NoGreen), 7.5) << hex(colors[i]);
      }
}

// A step is drawn with categories above and tasks, or kinds with an edge of their task, below.
TEST(Palette, CategoriesTasksAndKindsShareNoColor) {
  const std::vector<Palette> together = {category_palette(), task_palette(), kind_palette()};
  for (std::size_t p = 0; p < together.size(); ++p)
    for (std::size_t q = p + 1; q < together.size(); ++q)
      for (const Color x : together[p])
        for (const Color y : together[q])
          EXPECT_GE(difference(x, y, Vision::Full), apart) << hex(x) << " " << hex(y);
}

TEST(Palette, TextOnEachColorCanBeRead) {
  for (const Palette& colors : all_palettes())
    for (const Color color : colors)
      EXPECT_GE(contrast(color, text_color_on(color)), 4.5) << hex(color);
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
  EXPECT_EQ(hex({0x00, 0x72, 0xB2}), "#0072b2");
}

TEST(Palette, LinesAndPointsCanBeSeenOnWhiteAndOnBlack) {
  for (const Palette& colors : {line_palette(), verdict_palette(), change_palette()})
    for (const Color color : colors)
      for (const Color ground : {Color{0xFF, 0xFF, 0xFF}, Color{0x16, 0x19, 0x1D}})
        EXPECT_GE(contrast(color, ground), 3) << hex(color) << " on " << hex(ground);
}

}  // namespace
}  // namespace tidemark::exports::palette_test
