// Asks the environment, then the portal by the program that every GLib brings along: a wish is no
// reason to link D-Bus.
#include "gui/desktop.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace tidemark::gui {
namespace {

// A portal that hangs delays the window by this at most.
constexpr const char* ask_portal =
    "gdbus call --session --timeout 1 --dest org.freedesktop.portal.Desktop "
    "--object-path /org/freedesktop/portal/desktop "
    "--method org.freedesktop.portal.Settings.Read "
    "org.freedesktop.appearance color-scheme 2> /dev/null";

std::string output_of(const char* command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command, "r"), ::pclose);
  std::string text(64, '\0');
  text.resize(pipe ? std::fread(text.data(), 1, text.size(), pipe.get()) : 0);
  return text;
}

}  // namespace

std::optional<Theme> theme_of_gtk(std::string_view name) {
  if (name.empty()) return {};
  return name.ends_with(":dark") || name.ends_with("-dark") ? Theme::Dark : Theme::Light;
}

std::optional<Theme> theme_of_portal(std::string_view answer) {
  constexpr std::string_view type = "uint32 ";
  const std::size_t at = answer.find(type);
  if (at == answer.npos) return {};
  const std::string_view value = answer.substr(at + type.size());
  if (value.starts_with("1>")) return Theme::Dark;
  if (value.starts_with("2>")) return Theme::Light;
  return {};
}

std::optional<Theme> desktop_theme() {
  const char* gtk = std::getenv("GTK_THEME");
  if (const auto said = theme_of_gtk(gtk ? gtk : "")) return said;
  // Without a bus there is nobody to ask, and gdbus would start one.
  if (!std::getenv("DBUS_SESSION_BUS_ADDRESS")) return {};
  return theme_of_portal(output_of(ask_portal));
}

}  // namespace tidemark::gui
