// Reads the JSON into copies, so that a broken file changes nothing, and writes it as text.
#include "gui/settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/json_reader.h"

namespace tidemark::gui {
namespace {

constexpr int version = 1;

template <typename Table, typename Enum>
void read_name(const JsonView& root, std::string_view key, const Table& table, Enum& value) {
  const std::string_view text = root.text_or(key, "");
  for (const auto& row : table)
    if (row.name == text) value = row.value;
}

}  // namespace

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
    const JsonDocument document = read_json(path, FileKind::Settings);
    const JsonView root = document.root();
    if (root.at("version").integer() != version) return;  // of another program's age
    // Into copies: a file that is broken halfway changes nothing.
    ViewState read = view;
    read_name(root, "color_by", color_names, read.color_by);
    read_name(root, "tab", tab_names, read.tab);
    read.wanted_tab = read.tab;
    read.lower_share =
        static_cast<float>(root.number_or("lower_share", read.lower_share, 0.15, 0.75));
    read.shows_what_if = root.boolean_or("shows_what_if", read.shows_what_if);
    const auto side = [&](std::string_view key, int usual, int least, int most) {
      return static_cast<int>(root.integer_or(key, usual, least, most));
    };
    const PixelSize size{
        side("width", window.width, smallest_picture.width, largest_picture.width),
        side("height", window.height, smallest_picture.height, largest_picture.height)};
    view = read;
    window = size;
  } catch (const InputError& error) {
    view.notice = fmt::format("settings are not read: {}", error.what());
  }
}

void write_settings(const std::string& path, const ViewState& view, PixelSize window) {
  if (path.empty()) return;
  const std::string text = fmt::format(
      "{{\n"
      "  \"version\": {},\n"
      "  \"color_by\": \"{}\",\n"
      "  \"tab\": \"{}\",\n"
      "  \"lower_share\": {:.3f},\n"
      "  \"shows_what_if\": {},\n"
      "  \"width\": {},\n"
      "  \"height\": {}\n"
      "}}\n",
      version, color_names[static_cast<std::size_t>(view.color_by)].name,
      tab_names[static_cast<std::size_t>(view.tab)].name, view.lower_share, view.shows_what_if,
      window.width, window.height);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  try {
    write_file(path, text);
  } catch (const InputError&) {  // a read-only home is no reason to end badly
  }
}

}  // namespace tidemark::gui
