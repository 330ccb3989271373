#include <fmt/format.h>

#include <algorithm>

#include "gui/input.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark {
namespace {

TimelinePlaces place_everything(const ViewModel& model, const ViewState& view) {
  TimelinePlaces places;
  const float em = places.em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  places.all = {at.x, at.y, at.x + std::max(room.x, 12 * em), at.y + std::max(room.y, 8 * em)};
  const float left = places.all.x0 + 6.5F * em, right = places.all.x1;
  places.time = {view.visible, left, right};
  float y = places.all.y0;
  const auto take = [&](float height, float gap) {
    const Box box{left, y, right, y + height};
    y += height + gap;
    return box;
  };
  places.axis = take(1.5F * em, 0);
  const auto add_lanes = [&](const Opened& opened) {
    for (std::size_t s = 0; s < opened.lanes().size(); ++s)
      places.lanes.push_back({&opened, s, take(1.8F * em, 2)});
  };
  add_lanes(*model.shown(view));
  if (const Opened* against = model.against(view)) {
    y += 0.3F * em;
    add_lanes(*against);
  }
  places.key = take(1.35F * em, 2);
  const float mini_height = places.all.height() > 18 * em ? 2.2F * em : 0;
  places.memory = {left, y, right, std::max(y + 3 * em, places.all.y1 - mini_height - 4)};
  places.mini_map = {left, places.all.y1 - mini_height, right, places.all.y1};
  return places;
}

void draw_time_axis(ImDrawList& list, const TimelinePlaces& places) {
  const Axis& time = places.time;
  const Ticks ticks = decimal_ticks(time.range, 7 * places.em * time.per_pixel());
  for (double t = ticks.first; t < time.range.end; t += ticks.step) {
    const float x = std::floor(time.to_pixel(t));
    list.AddLine({x, places.axis.y1 - 4}, {x, places.memory.y1}, ink(theme::line, 140));
    const std::string text = tick_text(std::abs(t) < ticks.step / 2 ? 0 : t, ticks.step);
    if (x + 4 + text_width(text) > time.x1) break;
    draw_text(list, {x + 4, places.axis.y0, time.x1, places.axis.y1}, text, theme::faint);
  }
}

void draw_color_key(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                    const ViewState& view) {
  const Box& box = places.key;
  float x = box.x0;
  const float y = box.y0 + (box.height() - places.em) / 2;
  for (const auto& [name, color] : color_key(opened, view.color_by)) {
    if (x + text_width(name) + 3 * places.em > box.x1)
      return draw_text(list, {x, y, box.x1, y + places.em}, "...", theme::faint);
    x += draw_key(list, {x, y}, name, color);
  }
}

void draw_lane_label(ImDrawList& list, const TimelinePlaces& places,
                     const TimelinePlaces::Lane& lane, const Opened& shown) {
  const Box box{places.all.x0 + 2, lane.box.y0, lane.box.x0 - 6, lane.box.y1};
  const char side = lane.opened == &shown ? 'A' : 'B';
  const bool compares = places.lanes.front().opened != places.lanes.back().opened;
  const std::string name = compares ? fmt::format("{} stream {}", side, lane.stream)
                                    : fmt::format("stream {}", lane.stream);
  draw_text(list, box, name, side == 'A' ? theme::text : theme::faint, Align::Right);
}

// A vertical line through everything, with the moment at the top.
void draw_moment(ImDrawList& list, const TimelinePlaces& places, double moment, Color color,
                 bool has_label) {
  const float x = std::floor(places.time.to_pixel(moment)) + 0.5F;
  if (x < places.time.x0 || x > places.time.x1) return;
  list.AddLine({x, places.axis.y0}, {x, places.memory.y1}, ink(color, 170));
  if (!has_label) return;
  const std::string text = to_text(Nanoseconds{static_cast<std::int64_t>(std::max(0.0, moment))});
  const float width = text_width(text) + 0.6F * places.em;
  const float x0 = std::clamp(x - width / 2, places.time.x0, places.time.x1 - width);
  const Box label{x0, places.axis.y0, x0 + width, places.axis.y1 - 3};
  list.AddRectFilled(label.min(), label.max(), ink(color), 3);
  draw_text(list, label, text, text_color_on(color), Align::Center);
}

void draw_range(ImDrawList& list, const TimelinePlaces& places, const Range& range) {
  const float x0 = std::max(places.time.x0, places.time.to_pixel(range.begin));
  const float x1 = std::min(places.time.x1, places.time.to_pixel(range.end));
  if (x1 <= x0) return;
  list.AddRectFilled({x0, places.axis.y0}, {x1, places.memory.y1}, ink(theme::accent, 36));
  for (const float x : {x0, x1})
    list.AddLine({x, places.axis.y0}, {x, places.memory.y1}, ink(theme::accent, 200));
  const std::string text = to_text(Nanoseconds{static_cast<std::int64_t>(range.span())});
  if (text_width(text) < x1 - x0)
    draw_text(list, {x0, places.axis.y0, x1, places.axis.y1}, text, theme::bright, Align::Center);
}

// ---- hands

void zoom_and_pan(const TimelinePlaces& places, const Opened& opened, ViewState& view) {
  const ImGuiIO& io = ImGui::GetIO();
  const Limits limits{opened.end()};
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
  if (hovered.lane && hovered.lane->opened == &opened) {
    view.selection = {};
    if (hovered.run) select_run(opened, *hovered.run, view);
    return;
  }
  if (!places.memory.contains(mouse)) return;
  view.cursor = state_under(places, opened, mouse.x);
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
  const bool moved = io.MouseDragMaxDistanceSqr[zooms ? 2 : 0] >= threshold * threshold;
  if (moved) {
    const double end = model.shown(view)->end();
    const auto [begin, last] = std::minmax(*view.drag_from, moment);
    view.range = Range{std::clamp(begin, 0.0, end), std::clamp(last, 0.0, end)};
  }
  if (ImGui::IsMouseDown(0) || ImGui::IsMouseDown(2)) return;
  view.drag_from.reset();
  if (zooms && view.range) {
    view.visible = clamped(*view.range, {model.shown(view)->end()});
    view.range.reset();
  } else if (!view.range || view.range->span() <= 0) {
    view.range.reset();
    select_under_mouse(places, hovered, model, view);
  }
}

void use_mini_map(const TimelinePlaces& places, const Opened& opened, ViewState& view) {
  const ImVec2 clicked = ImGui::GetIO().MouseClickedPos[0];
  if (!ImGui::IsItemActive() || !ImGui::IsMouseDown(0) || !places.mini_map.contains(clicked))
    return;
  const Axis all{whole({opened.end()}), places.mini_map.x0, places.mini_map.x1};
  const double centre = all.to_value(ImGui::GetIO().MousePos.x);
  const double half = view.visible.span() / 2;
  view.visible = clamped({centre - half, centre + half}, {opened.end()});
}

void use_hands(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
               ViewState& view) {
  view.hover.reset();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool is_over = ImGui::IsItemHovered();
  if (is_over && mouse.x >= places.time.x0 && mouse.y < places.mini_map.y0)
    view.hover = places.time.to_value(mouse.x);
  if (is_over || ImGui::IsItemActive()) zoom_and_pan(places, *model.shown(view), view);
  use_mini_map(places, *model.shown(view), view);
  drag_and_click(places, hovered, model, view);
  if (is_over && hovered.run) draw_run_tooltip(hovered);
}

}  // namespace

void draw_timeline(ViewModel& model, ViewState& view) {
  const TimelinePlaces places = place_everything(model, view);
  const Opened& opened = *model.shown(view);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ImGui::InvisibleButton("plot", {places.all.width(), places.all.height()},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                             ImGuiButtonFlags_MouseButtonMiddle);
  const Hovered hovered = hovered_in(places, ImGui::GetIO().MousePos);
  view.facts.left = places.time.x0, view.facts.right = places.time.x1;
  view.facts.lanes = places.lanes.front().box.y0, view.facts.mini_map = places.mini_map.y0;
  view.facts.memory_top = places.memory.y0, view.facts.memory_bottom = places.memory.y1;

  list.PushClipRect(places.all.min(), places.all.max(), true);
  list.AddRectFilled({places.time.x0, places.axis.y1}, {places.time.x1, places.memory.y1},
                     ink(theme::plot));
  for (const auto& lane : places.lanes) draw_lane_label(list, places, lane, opened);
  draw_color_key(list, places, opened, view);
  draw_memory_curve(list, places, model, view);
  list.PushClipRect({places.time.x0, places.all.y0}, {places.time.x1, places.all.y1}, true);
  draw_time_axis(list, places);
  for (const auto& lane : places.lanes) draw_lane(list, places, lane, view);
  draw_relations(list, places, opened, view);
  draw_moment(list, places, view.cursor_time, theme::bright, true);
  if (view.hover) draw_moment(list, places, *view.hover, theme::accent, true);
  if (view.range) draw_range(list, places, *view.range);
  list.PopClipRect();
  if (places.mini_map.height() > 0) draw_mini_map(list, places, opened, view);
  list.PopClipRect();
  use_hands(places, hovered, model, view);
}

}  // namespace tidemark
