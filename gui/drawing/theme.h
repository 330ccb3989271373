// The window's own colours, light and dark; data has those of analysis/export/palette.h in both.
// Which of the two is drawn with is a matter of Dear ImGui's context, as its style is.
#pragma once

#include <array>

#include "analysis/export/palette.h"
#include "base/names.h"

namespace tidemark::gui {

enum class Theme : std::uint8_t { Dark, Light };

/// What the user asks for.
enum class ThemeChoice : std::uint8_t { Auto, Dark, Light };  ///< Auto: as the desktop wishes
inline constexpr std::array theme_choices = {Named{ThemeChoice::Auto, std::string_view("auto")},
                                             Named{ThemeChoice::Dark, std::string_view("dark")},
                                             Named{ThemeChoice::Light, std::string_view("light")}};
static_assert(is_in_order(theme_choices));

/// What a colour is for.
enum class Shade : std::uint8_t {
  Ground,  ///< of the window
  Panel,   ///< of its parts
  Plot,    ///< behind lanes and curves
  Line,    ///< between things
  Text,
  Faint,   ///< text beside text
  Accent,  ///< what hands touch
  Bright,  ///< what is looked at
  Alarm,   ///< what does not fit
  Folded,  ///< what is too small to tell
  Popup,   ///< of lists and menus
  Field,   ///< to type or choose in
  FieldHovered,
  FieldActive,
  Button,
  ButtonHovered,
  ButtonActive,
  Chosen,  ///< of several
  ChosenHovered,
  ChosenActive,
  Title,  ///< of windows and tables
  Grab,   ///< of sliders
  GrabActive,
};

struct ShadeRow {
  Shade value;
  Color dark, light;
};

inline constexpr std::array shades = {
    ShadeRow{Shade::Ground, {0x12, 0x15, 0x1A}, {0xEC, 0xEF, 0xF3}},
    ShadeRow{Shade::Panel, {0x1A, 0x1E, 0x25}, {0xF6, 0xF8, 0xFA}},
    ShadeRow{Shade::Plot, {0x0D, 0x10, 0x14}, {0xFF, 0xFF, 0xFF}},
    ShadeRow{Shade::Line, {0x2C, 0x33, 0x3D}, {0xC8, 0xCF, 0xD8}},
    ShadeRow{Shade::Text, {0xDD, 0xE2, 0xE9}, {0x1C, 0x22, 0x2A}},
    ShadeRow{Shade::Faint, {0x8B, 0x95, 0xA3}, {0x55, 0x60, 0x6E}},
    ShadeRow{Shade::Accent, {0x56, 0xB4, 0xE9}, {0x00, 0x62, 0x9E}},
    ShadeRow{Shade::Bright, {0xFF, 0xFF, 0xFF}, {0x00, 0x00, 0x00}},
    ShadeRow{Shade::Alarm, {0xFF, 0x6B, 0x4A}, {0xB4, 0x2C, 0x0C}},
    ShadeRow{Shade::Folded, {0x4A, 0x52, 0x5E}, {0xA9, 0xB2, 0xBE}},
    ShadeRow{Shade::Popup, {0x22, 0x27, 0x30}, {0xFF, 0xFF, 0xFF}},
    ShadeRow{Shade::Field, {0x26, 0x2C, 0x36}, {0xE2, 0xE7, 0xED}},
    ShadeRow{Shade::FieldHovered, {0x32, 0x3A, 0x47}, {0xD6, 0xDD, 0xE6}},
    ShadeRow{Shade::FieldActive, {0x3A, 0x45, 0x55}, {0xCA, 0xD4, 0xDF}},
    ShadeRow{Shade::Button, {0x2A, 0x31, 0x3C}, {0xDB, 0xE1, 0xE9}},
    ShadeRow{Shade::ButtonHovered, {0x38, 0x43, 0x52}, {0xCC, 0xD5, 0xDF}},
    ShadeRow{Shade::ButtonActive, {0x2C, 0x5D, 0x7A}, {0xA5, 0xCC, 0xE6}},
    ShadeRow{Shade::Chosen, {0x2C, 0x4A, 0x5E}, {0xC0, 0xDC, 0xEF}},
    ShadeRow{Shade::ChosenHovered, {0x33, 0x55, 0x6C}, {0xB0, 0xD3, 0xEA}},
    ShadeRow{Shade::ChosenActive, {0x38, 0x62, 0x7E}, {0xA0, 0xCA, 0xE5}},
    ShadeRow{Shade::Title, {0x22, 0x27, 0x30}, {0xDF, 0xE5, 0xEC}},
    ShadeRow{Shade::Grab, {0x2C, 0x6A, 0x8C}, {0x6F, 0xAA, 0xD0}},
    ShadeRow{Shade::GrabActive, {0x3A, 0x86, 0xB0}, {0x3F, 0x8B, 0xBC}}};
static_assert(is_in_order(shades));

constexpr Color color_of(Shade shade, Theme theme) {
  const ShadeRow& row = shades[static_cast<std::size_t>(shade)];
  return theme == Theme::Light ? row.light : row.dark;
}

/// That of Dear ImGui's context.
Theme theme_now();
/// All of its widgets with it.
void set_theme(Theme theme);

/// A shade as the theme of the moment has it.
struct Themed {
  Shade shade;

  operator Color() const { return color_of(shade, theme_now()); }
};

namespace theme {
inline constexpr Themed ground{Shade::Ground}, panel{Shade::Panel}, plot{Shade::Plot},
    line{Shade::Line}, text{Shade::Text}, faint{Shade::Faint}, accent{Shade::Accent},
    bright{Shade::Bright}, alarm{Shade::Alarm}, folded{Shade::Folded}, field{Shade::Field};
}  // namespace theme

}  // namespace tidemark::gui
