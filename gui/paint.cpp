#include "gui/paint.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tidemark {
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

ImVec4 as_vector(Color color, float alpha = 1) {
  return {static_cast<float>(color.red) / 255, static_cast<float>(color.green) / 255,
          static_cast<float>(color.blue) / 255, alpha};
}

}  // namespace

float text_width(std::string_view text) { return ImGui::CalcTextSize(text.data(), end_of(text)).x; }

void draw_text(ImDrawList& list, const Box& box, std::string_view text, Color color, Align align) {
  std::string cut;
  float width = text_width(text);
  if (width > box.width()) {
    const float dots_width = text_width(dots);
    if (box.width() < 2 * dots_width) return;  // three dots alone say nothing
    cut = shortened(text, box.width() - dots_width);
    text = cut;
    width = text_width(text);
  }
  const float room = box.width() - width;
  const float x = box.x0 + (align == Align::Left ? 0 : align == Align::Center ? room / 2 : room);
  const float y = box.y0 + (box.height() - ImGui::GetFontSize()) / 2;
  list.AddText({std::floor(x), std::floor(y)}, ink(color), text.data(), end_of(text));
}

float draw_key(ImDrawList& list, ImVec2 at, std::string_view text, Color swatch, Color color) {
  const float em = ImGui::GetFontSize();
  const float side = std::floor(0.62F * em);
  const float y = std::floor(at.y + (em - side) / 2);
  list.AddRectFilled({at.x, y}, {at.x + side, y + side}, ink(swatch), side / 6);
  list.AddText({std::floor(at.x + side + 0.35F * em), at.y}, ink(color), text.data(), end_of(text));
  return side + 0.35F * em + text_width(text) + 0.9F * em;
}

void text_line(std::string_view text, Color color) {
  ImGui::PushStyleColor(ImGuiCol_Text, ink(color));
  ImGui::TextUnformatted(text.data(), end_of(text));
  ImGui::PopStyleColor();
}

void set_style(float scale) {
  ImGuiStyle style;
  ImGui::StyleColorsDark(&style);
  style.WindowPadding = {8, 6};
  style.FramePadding = {6, 3};
  style.ItemSpacing = {8, 5};
  style.CellPadding = {6, 2};
  style.FrameRounding = 3;
  style.TabRounding = 3;
  style.ScrollbarSize = 12;
  style.WindowBorderSize = 1;
  const auto set = [&](ImGuiCol which, Color color) { style.Colors[which] = as_vector(color); };
  set(ImGuiCol_Text, theme::text), set(ImGuiCol_TextDisabled, theme::faint);
  set(ImGuiCol_WindowBg, theme::ground), set(ImGuiCol_ChildBg, theme::panel);
  set(ImGuiCol_PopupBg, Color{0x22, 0x27, 0x30}), set(ImGuiCol_Border, theme::line);
  set(ImGuiCol_FrameBg, Color{0x26, 0x2C, 0x36}),
      set(ImGuiCol_FrameBgHovered, Color{0x32, 0x3A, 0x47});
  set(ImGuiCol_FrameBgActive, Color{0x3A, 0x45, 0x55});
  set(ImGuiCol_Button, Color{0x2A, 0x31, 0x3C}),
      set(ImGuiCol_ButtonHovered, Color{0x38, 0x43, 0x52});
  set(ImGuiCol_ButtonActive, Color{0x2C, 0x5D, 0x7A});
  set(ImGuiCol_Tab, Color{0x22, 0x27, 0x30}), set(ImGuiCol_TabHovered, Color{0x38, 0x43, 0x52});
  set(ImGuiCol_TabActive, Color{0x2C, 0x4A, 0x5E});
  set(ImGuiCol_Header, Color{0x2C, 0x4A, 0x5E}),
      set(ImGuiCol_HeaderHovered, Color{0x33, 0x55, 0x6C});
  set(ImGuiCol_HeaderActive, Color{0x38, 0x62, 0x7E});
  set(ImGuiCol_TableHeaderBg, Color{0x22, 0x27, 0x30}), set(ImGuiCol_TableBorderLight, theme::line);
  set(ImGuiCol_TableBorderStrong, theme::line), set(ImGuiCol_SliderGrab, Color{0x2C, 0x6A, 0x8C});
  set(ImGuiCol_SliderGrabActive, Color{0x3A, 0x86, 0xB0});
  set(ImGuiCol_CheckMark, theme::accent), set(ImGuiCol_Separator, theme::line);
  style.ScaleAllSizes(scale);
  ImGui::GetStyle() = style;
}

}  // namespace tidemark
