// Small helpers for drawing: boxes, colours, text that keeps within its box.
#pragma once

#include <imgui.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/export/palette.h"
#include "gui/drawing/theme.h"
#include "gui/indexes/track_index.h"

namespace tidemark::gui {

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;

  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  bool contains(ImVec2 p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
  ImVec2 min() const { return {x0, y0}; }
  ImVec2 max() const { return {x1, y1}; }
};

constexpr ImU32 ink(Color color, unsigned alpha = 255) {
  return color.red | (unsigned{color.green} << 8) | (unsigned{color.blue} << 16) | (alpha << 24);
}

/// Between two colours; share 0 is the first.
constexpr Color mixed(Color a, Color b, double share) {
  const auto mix = [&](int from, int to) {
    return static_cast<std::uint8_t>(from + (to - from) * share);
  };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

enum class Align : std::uint8_t { Left, Center, Right };

/// One line, in the middle of the box's height; what does not fit ends in dots.
void draw_text(ImDrawList& list, const Box& box, std::string_view text, Color color,
               Align align = Align::Left);
float text_width(std::string_view text);
/// The text, or as much of it as fits with dots behind it.
std::string fitted(std::string_view text, float width);

/// A swatch and its name.
void draw_key(ImDrawList& list, ImVec2 at, std::string_view text, Color swatch,
              Color color = theme::faint);

/// A part of a legend: a swatch and a name, or a name alone.
struct KeyEntry {
  std::string text;
  std::optional<Color> swatch = {};
  float width = 0;       ///< of the text at least, so that changing numbers push nobody about
  bool is_edge = false;  ///< the color is that of a box's lower edge
};

/// A legend in as many rows as it takes: cutting it off would leave colors without a name.
float key_height(std::span<const KeyEntry> entries, float width);
void draw_keys(ImDrawList& list, const Box& box, std::span<const KeyEntry> entries, Color color);

/// Maps values of a range to pixels and back.
struct Axis {
  Range range;
  float x0 = 0, x1 = 1;

  float to_pixel(double value) const {
    return static_cast<float>(x0 +
                              (value - range.begin) / range.span() * static_cast<double>(x1 - x0));
  }
  double to_value(float pixel) const {
    return range.begin +
           static_cast<double>(pixel - x0) / static_cast<double>(x1 - x0) * range.span();
  }
  double per_pixel() const { return range.span() / static_cast<double>(x1 - x0); }
};

/// Text with fmt's formatting, in a widget of Dear ImGui; never a format string of its own.
void text_line(std::string_view text, Color color = theme::text);

/// The same in lines as wide as there is room. Breaks between words: Dear ImGui's own wrapping also
/// breaks "1.62" after the point.
void text_wrapped(std::string_view text, Color color = theme::text);

/// On one line; what does not fit ends in dots, and is all there under the mouse.
void fitted_line(std::string_view text, Color color = theme::text);
/// In the next column of a table: such a line.
void text_cell(std::string_view text, Color color = theme::text);
/// In a table: a number, at the right of its column, where decimals stand below each other.
void number_cell(std::string_view text, Color color = theme::text);

/// "1 209 019": people count digits in groups of three.
std::string grouped(std::size_t count);
/// "1 run", "1 209 019 runs"
std::string count_text(std::size_t count, std::string_view noun);

/// Square, scaled for the font; in the colours of the theme.
void set_style(float scale);

}  // namespace tidemark::gui
