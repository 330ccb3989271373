// What the mouse does to the timeline: zoom, move, ranges, clicks.
#include <algorithm>
#include <cmath>

#include "gui/navigation.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

void zoom_and_pan(const TimelinePlaces& places, ViewState& view) {
  const ImGuiIO& io = ImGui::GetIO();
  const Limits limits{view.end};
  const double under_mouse = places.time.to_value(io.MousePos.x);
  if (io.MouseWheel != 0 && io.KeyShift) {
    view.visible = panned(view.visible, -0.1 * static_cast<double>(io.MouseWheel), limits);
  } else if (io.MouseWheel != 0) {
    const double strength = io.KeyCtrl ? 0.95 : 0.8;  // Ctrl for small steps
    view.visible = zoomed(view.visible, under_mouse,
                          std::pow(strength, static_cast<double>(io.MouseWheel)), limits);
  }
  if (io.MouseWheelH != 0)
    view.visible = panned(view.visible, 0.1 * static_cast<double>(io.MouseWheelH), limits);
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right, 0))
    view.visible = panned(view.visible,
                          -static_cast<double>(io.MouseDelta.x) /
                              static_cast<double>(places.time.x1 - places.time.x0),
                          limits);
}

void select_under_mouse(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
                        ViewState& view) {
  const Opened& opened = *model.shown(view);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  // Runs of B are looked at, not selected: a selection is of what is shown.
  if (hovered.lane && hovered.lane->opened == &opened) {
    view.selection = {};
    if (hovered.run) select_run(opened, *hovered.run, view);
    return;
  }
  if (!places.memory.contains(mouse)) return;
  view.cursor = state_under(places, opened, mouse.x);
  // The state under a pixel may begin within it: the cursor is not before what it shows.
  view.cursor_time = std::max(places.time.to_value(mouse.x),
                              static_cast<double>(opened.memory().begin_of(view.cursor).count()));
}

// Left: a drag makes a range, a click selects. Middle: a drag is zoomed to.
void drag_and_click(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
                    ViewState& view) {
  const ImGuiIO& io = ImGui::GetIO();
  const double moment = places.time.to_value(io.MousePos.x);
  const bool starts = ImGui::IsItemHovered() && io.MousePos.y < places.mini_map.y0 &&
                      io.MousePos.x >= places.time.x0 &&
                      (ImGui::IsMouseClicked(0) || ImGui::IsMouseClicked(2));
  if (starts) view.drag_from = moment;
  if (!view.drag_from) return;
  const bool zooms = ImGui::IsMouseDown(2) || ImGui::IsMouseReleased(2);
  const float threshold = io.MouseDragThreshold;
  // A hand trembles: below Dear ImGui's threshold a drag is a click.
  const bool moved = io.MouseDragMaxDistanceSqr[zooms ? 2 : 0] >= threshold * threshold;
  if (moved) {
    const double end = model.shown(view)->end();
    const auto [begin, last] = std::minmax(*view.drag_from, moment);
    view.range = Range{std::clamp(begin, 0.0, end), std::clamp(last, 0.0, end)};
  }
  if (ImGui::IsMouseDown(0) || ImGui::IsMouseDown(2)) return;
  view.drag_from.reset();
  if (zooms && view.range) {
    view.visible = clamped(*view.range, {view.end});
    view.range.reset();
  } else if (!view.range || view.range->span() <= 0) {
    view.range.reset();
    select_under_mouse(places, hovered, model, view);
  }
}

void use_mini_map(const TimelinePlaces& places, ViewState& view) {
  // A drag that began in the map stays one when the hand leaves it.
  const ImVec2 clicked = ImGui::GetIO().MouseClickedPos[0];
  if (!ImGui::IsItemActive() || !ImGui::IsMouseDown(0) || !places.mini_map.contains(clicked))
    return;
  const Axis all{whole({view.end}), places.mini_map.x0, places.mini_map.x1};
  const double centre = all.to_value(ImGui::GetIO().MousePos.x);
  const double half = view.visible.span() / 2;
  view.visible = clamped({centre - half, centre + half}, {view.end});
}

}  // namespace

void use_hands(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
               ViewState& view) {
  view.hover.reset();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool is_over = ImGui::IsItemHovered();
  if (is_over && mouse.x >= places.time.x0 && mouse.y < places.mini_map.y0)
    view.hover = places.time.to_value(mouse.x);
  if (is_over || ImGui::IsItemActive()) zoom_and_pan(places, view);
  use_mini_map(places, view);
  drag_and_click(places, hovered, model, view);
  if (is_over && hovered.run) draw_run_tooltip(hovered);
}

}  // namespace tidemark::gui
