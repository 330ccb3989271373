// Reads the JSON into copies, so that a broken text changes nothing.
#include "gui/settings_text.h"

#include <fmt/format.h>

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

std::string write_settings_text(const ViewState& view, PixelSize window) {
  return fmt::format(
      "{{\n"
      "  \"version\": {},\n"
      "  \"color_by\": \"{}\",\n"
      "  \"curve\": \"{}\",\n"
      "  \"theme\": \"{}\",\n"
      "  \"tab\": \"{}\",\n"
      "  \"lower_share\": {:.3f},\n"
      "  \"shows_what_if\": {},\n"
      "  \"width\": {},\n"
      "  \"height\": {}\n"
      "}}\n",
      version, color_names[static_cast<std::size_t>(view.color_by)].name,
      curve_names[static_cast<std::size_t>(view.curve.by)].name,
      theme_choices[static_cast<std::size_t>(view.theme)].name,
      tab_names[static_cast<std::size_t>(view.tab)].name, view.lower_share, view.shows_what_if,
      window.width, window.height);
}

void read_settings_text(std::string_view text, std::string_view file, ViewState& view,
                        PixelSize& window) {
  const JsonDocument document(text, file);
  const JsonView root = document.root();
  if (root.at("version").integer() != version) return;  // of another program's age
  ViewState read = view;
  read_name(root, "color_by", color_names, read.color_by);
  read_name(root, "curve", curve_names, read.curve.by);
  read_name(root, "theme", theme_choices, read.theme);
  read_name(root, "tab", tab_names, read.tab);
  read.wanted_tab = read.tab;
  read.lower_share = static_cast<float>(
      root.number_or("lower_share", read.lower_share, least_lower_share, most_lower_share));
  read.shows_what_if = root.boolean_or("shows_what_if", read.shows_what_if);
  const auto side = [&](std::string_view key, int usual, int least, int most) {
    return static_cast<int>(root.integer_or(key, usual, least, most));
  };
  const PixelSize size{
      side("width", window.width, smallest_picture.width, largest_picture.width),
      side("height", window.height, smallest_picture.height, largest_picture.height)};
  view = read;
  window = size;
}

}  // namespace tidemark::gui
