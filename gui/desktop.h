// Whether the desktop wishes its windows dark or light.
#pragma once

#include <optional>
#include <string_view>

#include "gui/drawing/theme.h"

namespace tidemark::gui {

/// Of a theme of GTK: "Adwaita:dark", "Yaru-dark"; nothing for "".
std::optional<Theme> theme_of_gtk(std::string_view name);

/// Of what the desktop portal answers to Settings.Read(org.freedesktop.appearance, color-scheme),
/// as gdbus prints it: "(<<uint32 1>>,)". 1 is dark, 2 is light, 0 no wish (XDG Desktop Portal,
/// org.freedesktop.portal.Settings).
std::optional<Theme> theme_of_portal(std::string_view answer);

/// $GTK_THEME, or else what the portal says; nothing where nobody says anything.
std::optional<Theme> desktop_theme();

}  // namespace tidemark::gui
