// The settings' file: where it is, and that it is a comfort, never a reason to fail.
#include "gui/settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "gui/settings_text.h"

namespace tidemark::gui {

std::string settings_path() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string folder = variable("XDG_CONFIG_HOME"); folder.starts_with("/"))
    return folder + "/tidemark/view.json";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/tidemark/view.json";
}

void read_settings(const std::string& path, ViewState& view, PixelSize& window) {
  if (path.empty() || !std::filesystem::exists(path)) return;
  try {
    read_settings_text(read_file(path, FileKind::Settings), path, view, window);
  } catch (const InputError& error) {
    view.notice = fmt::format("settings are not read: {}", error.what());
  }
}

void write_settings(const std::string& path, const ViewState& view, PixelSize window) {
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  try {
    write_file(path, write_settings_text(view, window));
  } catch (const InputError&) {  // a read-only home is no reason to end badly
  }
}

}  // namespace tidemark::gui
