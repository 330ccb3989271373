// Shortens texts by halving, lays out colour keys, and sets Dear ImGui's style.
#include "gui/drawing/paint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidemark::gui {
namespace {

constexpr std::string_view dots = "...";

const char* end_of(std::string_view text) { return text.data() + text.size(); }

// The longest beginning that leaves room for dots, found by halving: widths only grow.
std::string shortened(std::string_view text, float width) {
  std::size_t fits = 0, too_long = text.size();
  while (too_long - fits > 1) {
    const std::size_t middle = fits + (too_long - fits) / 2;
    (text_width(text.substr(0, middle)) <= width ? fits : too_long) = middle;
  }
  while (fits > 0 && (static_cast<unsigned char>(text[fits]) & 0xC0U) == 0x80U) --fits;
  return std::string(text.substr(0, fits)) + std::string(dots);
}

// Where each entry of a legend goes: calls visit(entry, x, row) with x from 0.
template <typename Visit>
void lay_out(std::span<const KeyEntry> entries, float width, Visit visit) {
  const float em = ImGui::GetFontSize();
  float x = 0;
  int row = 0;
  for (const KeyEntry& entry : entries) {
    const float own =
        (entry.swatch ? 0.97F * em : 0) + std::max(entry.width, text_width(entry.text));
    if (x > 0 && x + own > width) x = 0, ++row;
    visit(entry, x, row);
    x += own + 0.9F * em;
  }
}

float key_row_height() { return std::floor(1.35F * ImGui::GetFontSize()); }

// Where a line may end that begins at `text`: after the last word that fits, or inside a word that
// is itself too long, then after a point if there is one ("stages.0.blocks.1." "attn.softmax").
std::size_t line_end(std::string_view text, float width) {
  std::size_t end = 0;
  for (std::size_t space = 0; space != text.npos && space < text.size();) {
    space = text.find(' ', space + 1);
    if (text_width(text.substr(0, space)) > width) break;
    end = std::min(space, text.size());
  }
  if (end > 0) return end;
  for (end = text.size(); end > 1 && text_width(text.substr(0, end)) > width;) --end;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  const std::size_t point = text.substr(0, end).rfind('.');
  return end == text.size() || point == text.npos ? end : point + 1;
}

}  // namespace

float text_width(std::string_view text) { return ImGui::CalcTextSize(text.data(), end_of(text)).x; }

std::string fitted(std::string_view text, float width) {
  if (text_width(text) <= width) return std::string(text);
  const float dots_width = text_width(dots);
  if (width < 2 * dots_width) return "";  // three dots alone say nothing
  return shortened(text, width - dots_width);
}

void draw_text(ImDrawList& list, const Box& box, std::string_view text, Color color, Align align) {
  const std::string shown = fitted(text, box.width());
  if (shown.empty()) return;
  const float room = box.width() - text_width(shown);
  const float x = box.x0 + (align == Align::Left ? 0 : align == Align::Center ? room / 2 : room);
  const float y = box.y0 + (box.height() - ImGui::GetFontSize()) / 2;
  list.AddText({std::floor(x), std::floor(y)}, ink(color), shown.data(), end_of(shown));
}

void draw_key(ImDrawList& list, ImVec2 at, std::string_view text, Color swatch, Color color) {
  const float em = ImGui::GetFontSize();
  const float side = std::floor(0.62F * em);
  const float y = std::floor(at.y + (em - side) / 2);
  list.AddRectFilled({at.x, y}, {at.x + side, y + side}, ink(swatch), side / 6);
  list.AddText({std::floor(at.x + side + 0.35F * em), at.y}, ink(color), text.data(), end_of(text));
}

float key_height(std::span<const KeyEntry> entries, float width) {
  int rows = 0;
  lay_out(entries, width, [&](const KeyEntry&, float, int row) { rows = row + 1; });
  return static_cast<float>(rows) * key_row_height();
}

void draw_keys(ImDrawList& list, const Box& box, std::span<const KeyEntry> entries, Color color) {
  const float em = ImGui::GetFontSize();
  lay_out(entries, box.width(), [&](const KeyEntry& entry, float x, int row) {
    const ImVec2 at = {std::floor(box.x0 + x),
                       std::floor(box.y0 + static_cast<float>(row) * key_row_height())};
    if (entry.swatch) {
      draw_key(list, at, entry.text, entry.is_edge ? theme::folded : *entry.swatch, color);
      const float side = std::floor(0.62F * em), low = std::floor(at.y + (em + side) / 2);
      if (entry.is_edge)
        list.AddRectFilled({at.x, low - 0.3F * em}, {at.x + side, low}, ink(*entry.swatch));
    } else {  // in a narrow window even one entry may be too wide
      draw_text(list, {at.x, at.y, box.x1, at.y + em}, entry.text, color);
    }
  });
}

void text_line(std::string_view text, Color color) {
  ImGui::PushStyleColor(ImGuiCol_Text, ink(color));
  ImGui::TextUnformatted(text.data(), end_of(text));
  ImGui::PopStyleColor();
}

void text_wrapped(std::string_view text, Color color) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 1});
  ImGui::BeginGroup();  // lines after the first begin below it, not at the window's left
  const float width = std::max(ImGui::GetFontSize(), ImGui::GetContentRegionAvail().x);
  do {
    const std::size_t end = line_end(text, width);
    text_line(text.substr(0, end), color);
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  } while (!text.empty());
  ImGui::PopStyleVar();  // before the end: what follows the group keeps the usual distance
  ImGui::EndGroup();
}

void text_cell(std::string_view text, Color color) {
  ImGui::TableNextColumn();
  fitted_line(text, color);
}

void fitted_line(std::string_view text, Color color) {
  const std::string shown = fitted(text, ImGui::GetContentRegionAvail().x);
  text_line(shown, color);
  if (shown.size() != text.size() && ImGui::IsItemHovered())
    ImGui::SetTooltip("%s", std::string(text).c_str());
}

void number_cell(std::string_view text, Color color) {
  ImGui::TableNextColumn();
  const float room = ImGui::GetContentRegionAvail().x - text_width(text);
  if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
  text_line(text, color);
}

std::string grouped(std::size_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, " ");
  return digits;
}

std::string count_text(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

void set_style(float scale) {
  ImGuiStyle style;
  style.WindowPadding = {8, 6};
  style.FramePadding = {6, 3};
  style.ItemSpacing = {8, 5};
  style.CellPadding = {6, 2};
  style.FrameRounding = 3;
  style.TabRounding = 3;
  style.ScrollbarSize = 12;
  style.WindowBorderSize = 1;
  style.ScaleAllSizes(scale);
  ImGui::GetStyle() = style;
  set_theme(theme_now());
}

}  // namespace tidemark::gui
