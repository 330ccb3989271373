// What the mouse does to the timeline: zoom, move, ranges, clicks.
#include <algorithm>
#include <cmath>

#include "gui/navigation.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// On the axis of bytes the wheel zooms that axis, and with Shift moves along it.
void zoom_bytes(const TimelinePlaces& places, ViewState& view) {
  const auto wheel = static_cast<double>(ImGui::GetIO().MouseWheel);
  if (wheel == 0) return;
  constexpr double narrowest = 64 << 10;  // bytes: some of the smallest tensors
  const Limits limits{view.facts.byte_top, narrowest};
  const Range now = view.bytes.value_or(Range{0, limits.end});
  const Box& box = places.memory;
  const double share = static_cast<double>((box.y1 - ImGui::GetIO().MousePos.y) / box.height());
  Range wanted = ImGui::GetIO().KeyShift
                     ? panned(now, 0.1 * wheel, limits)
                     : zoomed(now, now.begin + share * now.span(), std::pow(0.8, wheel), limits);
  // No emptiness below zero, and all of it is the usual picture.
  wanted.end -= std::min(0.0, wanted.begin), wanted.begin = std::max(0.0, wanted.begin);
  view.bytes = wanted.span() < limits.end ? std::optional(wanted) : std::nullopt;
}

// What is clicked in the stack is selected: a module or a tensor.
void select_band(const TimelinePlaces& places, const Opened& opened, ViewState& view) {
  const Band& band = places.curve_of(opened).all()[*view.facts.band];
  if (band.buffer) select_buffer(opened, *band.buffer, view);
  if (band.block) view.selection = {.block = *band.block};
}

void zoom_and_pan(const TimelinePlaces& places, ViewState& view) {
  const ImGuiIO& io = ImGui::GetIO();
  const Limits limits{view.end};
  const double under_mouse = places.time.to_value(io.MousePos.x);
  if (places.byte_axis().contains(io.MousePos)) return zoom_bytes(places, view);
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

// A block as a whole; of what is outside of blocks the first op.
void select_module(const Opened& opened, const Module& module, ViewState& view) {
  view.selection = {};
  if (module.block >= 0) {
    view.selection.block = module.block;
    return;
  }
  const auto has = [&](const Modules& modules, std::size_t op) {
    return modules.all[modules.of_op[op]].name == module.name;
  };
  for (std::size_t op = 0; op < opened.trace().ops.size(); ++op)
    if (has(opened.modules(), op) || has(opened.inner_modules(), op))
      return select_op(static_cast<OpId>(op), view);
}

void draw_module_tooltip(const Module& module) {
  ImGui::BeginTooltip();
  text_line(module.name, theme::bright);
  text_line("a click selects all of it", theme::faint);
  ImGui::EndTooltip();
}

void draw_phase_tooltip(const std::vector<std::string>& lines) {
  ImGui::BeginTooltip();
  Color color = theme::bright;
  for (const std::string& line : lines) {
    text_line(line, color);
    color = theme::text;
  }
  ImGui::EndTooltip();
}

void select_under_mouse(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
                        ViewState& view) {
  const Opened& opened = *model.shown(view);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (hovered.lane && hovered.lane->stage) {
    if (model.is_prediction(view.shown))
      model.show_rank(RankClass{static_cast<std::int64_t>(*hovered.lane->stage)}, view);
    return;
  }
  // Runs of B are looked at, not selected: a selection is of what is shown.
  if (hovered.lane && hovered.lane->opened == &opened) {
    view.selection = {};
    if (hovered.run) select_run(opened, *hovered.run, view);
    return;
  }
  if (const Module* module = module_under(places, opened, mouse)) {
    select_module(opened, *module, view);
    return;
  }
  if (!places.memory.contains(mouse)) return;
  view.cursor = state_under(places, opened, mouse.x);
  // The state under a pixel may begin within it: the cursor is not before what it shows.
  view.cursor_time = std::max(places.time.to_value(mouse.x),
                              static_cast<double>(opened.memory().begin_of(view.cursor).count()));
  if (view.facts.band) select_band(places, opened, view);
}

// Nothing between a moment and itself.
std::optional<Range> ordered(double a, double b, double end) {
  const Range range{std::clamp(std::min(a, b), 0.0, end), std::clamp(std::max(a, b), 0.0, end)};
  return range.span() > 0 ? std::optional(range) : std::nullopt;
}

// A hand on an edge of the range takes it along: where the other edge is.
std::optional<double> far_edge(const TimelinePlaces& places, const ViewState& view) {
  if (!view.range) return {};
  const float reach = 0.4F * places.em, x = ImGui::GetIO().MousePos.x;
  if (std::abs(places.time.to_pixel(view.range->begin) - x) <= reach) return view.range->end;
  if (std::abs(places.time.to_pixel(view.range->end) - x) <= reach) return view.range->begin;
  return {};
}

// Left: a drag makes a range, or moves one of its edges; a click selects, and with Shift makes the
// range from the cursor to here. Middle: a drag is zoomed to.
void drag_and_click(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
                    ViewState& view) {
  const ImGuiIO& io = ImGui::GetIO();
  const double moment = places.time.to_value(io.MousePos.x);
  const bool starts = ImGui::IsItemHovered() && io.MousePos.y < places.mini_map.y0 &&
                      io.MousePos.x >= places.time.x0 &&
                      (ImGui::IsMouseClicked(0) || ImGui::IsMouseClicked(2));
  if (starts) view.drag_from = far_edge(places, view).value_or(moment);
  if (!view.drag_from) return;
  const bool zooms = ImGui::IsMouseDown(2) || ImGui::IsMouseReleased(2);
  const float threshold = io.MouseDragThreshold;
  // A hand trembles: below Dear ImGui's threshold a drag is a click.
  const bool moved = io.MouseDragMaxDistanceSqr[zooms ? 2 : 0] >= threshold * threshold;
  if (moved) view.range = ordered(*view.drag_from, moment, model.shown(view)->end());
  if (ImGui::IsMouseDown(0) || ImGui::IsMouseDown(2)) return;
  view.drag_from.reset();
  if (zooms && view.range) {
    view.visible = clamped(*view.range, {view.end});
    view.range.reset();
  } else if (!moved && io.KeyShift) {
    view.range = ordered(view.cursor_time, moment, model.shown(view)->end());
  } else if (!moved) {
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
  if (is_over && (hovered.run || (hovered.lane && hovered.lane->stage)))
    draw_run_tooltip(hovered, model.ranks_of(view.shown));
  if (const Module* module = module_under(places, *model.shown(view), mouse); is_over && module)
    draw_module_tooltip(*module);
  if (const Phase* phase = phase_under(places, *model.shown(view), mouse); is_over && phase)
    draw_phase_tooltip(lines_of(*phase, model, view));
  if (is_over && view.facts.band && !view.drag_from)
    draw_band_tooltip(places, *model.shown(view), view);
}

}  // namespace tidemark::gui
