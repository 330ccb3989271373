// Colours of Dear ImGui's widgets, and the theme of its context, kept where it has room for one
// pointer of its user's.
#include "gui/drawing/theme.h"

#include <imgui.h>

namespace tidemark::gui {
namespace {

constexpr std::array themes = {Theme::Dark, Theme::Light};

struct WidgetColor {
  ImGuiCol_ widget;
  Shade shade;
};

constexpr std::array widget_colors = {WidgetColor{ImGuiCol_Text, Shade::Text},
                                      WidgetColor{ImGuiCol_TextDisabled, Shade::Faint},
                                      WidgetColor{ImGuiCol_WindowBg, Shade::Ground},
                                      WidgetColor{ImGuiCol_ChildBg, Shade::Panel},
                                      WidgetColor{ImGuiCol_PopupBg, Shade::Popup},
                                      WidgetColor{ImGuiCol_Border, Shade::Line},
                                      WidgetColor{ImGuiCol_FrameBg, Shade::Field},
                                      WidgetColor{ImGuiCol_FrameBgHovered, Shade::FieldHovered},
                                      WidgetColor{ImGuiCol_FrameBgActive, Shade::FieldActive},
                                      WidgetColor{ImGuiCol_Button, Shade::Button},
                                      WidgetColor{ImGuiCol_ButtonHovered, Shade::ButtonHovered},
                                      WidgetColor{ImGuiCol_ButtonActive, Shade::ButtonActive},
                                      WidgetColor{ImGuiCol_Tab, Shade::Title},
                                      WidgetColor{ImGuiCol_TabHovered, Shade::ButtonHovered},
                                      WidgetColor{ImGuiCol_TabActive, Shade::Chosen},
                                      WidgetColor{ImGuiCol_Header, Shade::Chosen},
                                      WidgetColor{ImGuiCol_HeaderHovered, Shade::ChosenHovered},
                                      WidgetColor{ImGuiCol_HeaderActive, Shade::ChosenActive},
                                      WidgetColor{ImGuiCol_TitleBg, Shade::Title},
                                      WidgetColor{ImGuiCol_TitleBgActive, Shade::Title},
                                      WidgetColor{ImGuiCol_TableHeaderBg, Shade::Title},
                                      WidgetColor{ImGuiCol_TableBorderLight, Shade::Line},
                                      WidgetColor{ImGuiCol_TableBorderStrong, Shade::Line},
                                      WidgetColor{ImGuiCol_SliderGrab, Shade::Grab},
                                      WidgetColor{ImGuiCol_SliderGrabActive, Shade::GrabActive},
                                      WidgetColor{ImGuiCol_CheckMark, Shade::Accent},
                                      WidgetColor{ImGuiCol_Separator, Shade::Line}};

ImVec4 as_vector(Color color) {
  return {static_cast<float>(color.red) / 255, static_cast<float>(color.green) / 255,
          static_cast<float>(color.blue) / 255, 1};
}

}  // namespace

Theme theme_now() {
  const auto* now = static_cast<const Theme*>(ImGui::GetIO().UserData);
  return now ? *now : Theme::Dark;
}

void set_theme(Theme theme) {
  // Dear ImGui's pointer is to what may be changed; nobody does.
  ImGui::GetIO().UserData = const_cast<Theme*>(&themes[static_cast<std::size_t>(theme)]);
  theme == Theme::Light ? ImGui::StyleColorsLight() : ImGui::StyleColorsDark();
  for (const auto& [widget, shade] : widget_colors)
    ImGui::GetStyle().Colors[widget] = as_vector(color_of(shade, theme));
}

}  // namespace tidemark::gui
