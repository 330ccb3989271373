// The timeline panel: places axis, lanes, curve and mini map, and draws flags, phases and ranges.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "gui/facts.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// Of the height, for the lanes of other classes of ranks than the one shown.
constexpr float most_for_ranks = 0.25F;

// Of what lies over the stack only the sum is drawn.
void add_curves(ViewModel& model, const ViewState& view, TimelinePlaces& places) {
  CurveChoice of_sum = view.curve;
  of_sum.by = CurveBy::Category;
  const auto add = [&](const ViewModel::Shown& opened, const CurveChoice& choice) {
    places.curves.push_back(model.curves().of(opened, choice, view.visible));
  };
  model.curves().begin_frame();
  add(model.shown(view), view.curve);
  // One that is drawn already, as what was kept of what is shown is, has one set of bands.
  std::vector<const Opened*> drawn = {model.shown(view).get()};
  const auto add_sum_of = [&](const ViewModel::Shown& opened) {
    if (std::ranges::find(drawn, opened.get()) != drawn.end()) return;
    drawn.push_back(opened.get());
    add(opened, of_sum);
  };
  const std::vector<const Opened*> overlaid = model.overlaid(view);
  for (const OpenRecording& recording : model.recordings())
    if (std::ranges::find(overlaid, recording.opened.get()) != overlaid.end())
      add_sum_of(recording.opened);
  if (model.before()) add_sum_of(model.before());
  if (const auto imagined = model.imagined()) add_sum_of(imagined->opened);
}

TimelinePlaces place_everything(ViewModel& model, const ViewState& view) {
  TimelinePlaces places;
  add_curves(model, view, places);
  const Opened& opened = *model.shown(view);
  if (model.aligns_phases(view))
    for (const auto& curve : places.curves)
      if (&curve->opened() != &opened)
        places.maps.emplace_back(&curve->opened(), phase_by_phase(curve->opened(), opened));
  const float em = places.em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  places.all = {at.x, at.y, at.x + std::max(room.x, 12 * em), at.y + std::max(room.y, 8 * em)};
  const float left = places.all.x0 + 6.5F * em, right = places.all.x1;
  places.time = {view.visible, left, right};
  // Where it is low, the lanes and the curve come first, then the bytes, then the key to the lanes.
  const bool has_legends = places.all.height() > 16 * em;
  const bool has_key = places.all.height() > 20 * em;
  const float mini_height = places.all.height() > 18 * em ? 2.2F * em : 0;
  float y = places.all.y0;
  const auto take = [&](float height, float gap) {
    const Box box{left, y, right, y + height};
    y += height + gap;
    return box;
  };
  const float width = right - left - 4;
  places.key =
      take(has_key ? key_height(color_key(opened, view.color_by), right - left) + 0.2F * em : 0, 0);
  places.axis = take(1.5F * em, 0);
  places.phases = take(has_legends && opened.phases().size() > 1 ? 1.25F * em : 0, 1);
  places.modules = take(has_legends && has_modules(opened) ? 1.25F * em : 0, 1);
  const auto add_lanes = [&](const Opened& one) {
    for (std::size_t s = 0; s < one.lanes().size(); ++s)
      places.lanes.push_back({&one, s, take(1.8F * em, 2)});
  };
  add_lanes(opened);
  if (const Ranks* ranks = model.ranks_of(view.shown))
    y = place_rank_lanes(*ranks, y, most_for_ranks * places.all.height(), places);
  if (const Opened* against = model.against(view)) {
    y += 0.3F * em;
    add_lanes(*against);
  }
  y += 0.4F * em;
  places.reading =
      take(has_legends ? key_height(reading_of(places, model, view), width) + 0.2F * em : 0, 0);
  // Below the curve is the mini-map, or half of the label of zero bytes.
  const float below = mini_height > 0 ? mini_height + 4 : 0.5F * em;
  places.memory = {left, y, right, std::max(y + 3 * em, places.all.y1 - below)};
  places.mini_map = {left, places.all.y1 - mini_height, right, places.all.y1};
  return places;
}

// As exact as a pixel is wide: "265.83 ms" where the axis says 265.8 and 266.0.
std::string moment_text(const TimelinePlaces& places, double moment) {
  const double step =
      std::max(1.0, std::pow(10, std::floor(std::log10(std::max(1.0, places.time.per_pixel())))));
  return tick_text(std::round(std::max(0.0, moment) / step) * step, step);
}

// The flag on top of the line at a moment.
Box flag_box(const TimelinePlaces& places, double moment) {
  const float width = text_width(moment_text(places, moment)) + 0.6F * places.em;
  const float x0 = std::clamp(places.time.to_pixel(moment) - width / 2, places.time.x0,
                              std::max(places.time.x0, places.time.x1 - width));
  return {x0, places.axis.y0, x0 + width, places.axis.y1 - 3};
}

bool overlap(const Box& a, const Box& b) { return a.x0 < b.x1 && b.x0 < a.x1; }

bool is_under_a_flag(const TimelinePlaces& places, const ViewState& view, const Box& text) {
  return (places.time.range.contains(view.cursor_time) &&
          overlap(text, flag_box(places, view.cursor_time))) ||
         (view.hover && overlap(text, flag_box(places, *view.hover)));
}

void draw_time_axis(ImDrawList& list, const TimelinePlaces& places, const ViewState& view) {
  const Axis& time = places.time;
  const Ticks ticks = decimal_ticks(time.range, 7 * places.em * time.per_pixel());
  for (double t = ticks.first; t < time.range.end; t += ticks.step) {
    const float x = std::floor(time.to_pixel(t));
    list.AddLine({x, places.axis.y1 - 4}, {x, places.memory.y1}, ink(theme::line, 140));
    const std::string text = tick_text(std::abs(t) < ticks.step / 2 ? 0 : t, ticks.step);
    const Box box{x + 4, places.axis.y0, x + 5 + text_width(text), places.axis.y1};
    if (box.x1 > time.x1) break;
    if (!is_under_a_flag(places, view, box)) draw_text(list, box, text, theme::faint);
  }
}

// "stream 0"; "B stream 0" while two are compared, "pp2 stream 0" of a pipeline.
void draw_lane_label(ImDrawList& list, const TimelinePlaces& places,
                     const TimelinePlaces::Lane& lane, const ViewModel& model,
                     const ViewState& view) {
  if (lane.stage) return;  // they have labels of their own
  const Box box{places.all.x0 + 2, lane.box.y0, lane.box.x0 - 6, lane.box.y1};
  const bool is_shown = lane.opened == model.shown(view).get();
  const Ranks* ranks = model.ranks_of(view.shown);
  std::string whose;
  if (model.against(view)) {
    whose = fmt::format("{} ", recording_letter(is_shown ? 0 : 1));
  } else if (ranks) {
    whose = fmt::format("pp{} ", ranks->shown);
  }
  draw_text(list, box, fmt::format("{}stream {}", whose, lane.stream),
            is_shown ? theme::text : theme::faint, Align::Right);
}

// A vertical line through everything, with the moment at the top.
void draw_moment(ImDrawList& list, const TimelinePlaces& places, double moment, Color color) {
  if (!places.time.range.contains(moment)) return;
  const float x = std::floor(places.time.to_pixel(moment)) + 0.5F;
  list.AddLine({x, places.axis.y0}, {x, places.memory.y1}, ink(color, 170));
  const Box label = flag_box(places, moment);
  list.AddRectFilled(label.min(), label.max(), ink(color), 3);
  draw_text(list, label, moment_text(places, moment), text_color_on(color), Align::Center);
}

// Two cursors: where each is, and what lies between them.
void draw_range(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                const Range& range) {
  const float x0 = std::max(places.time.x0, places.time.to_pixel(range.begin));
  const float x1 = std::min(places.time.x1, places.time.to_pixel(range.end));
  if (x1 <= x0) return;
  list.AddRectFilled({x0, places.axis.y0}, {x1, places.memory.y1}, ink(theme::accent, 36));
  for (const double edge : {range.begin, range.end}) draw_moment(list, places, edge, theme::accent);
  const auto live_at = [&](double moment) {
    return opened.memory().total_of(opened.memory().at(moment));
  };
  const std::string text =
      fmt::format("{}, {}", to_text(Nanoseconds{static_cast<std::int64_t>(range.span())}),
                  change_text(live_at(range.begin), live_at(range.end)));
  const float width = text_width(text) + 0.6F * places.em;
  if (width >= x1 - x0) return;
  const float middle = (x0 + x1) / 2;
  const Box label{middle - width / 2, places.memory.y0 + 2, middle + width / 2,
                  places.memory.y0 + 2 + 1.3F * places.em};
  list.AddRectFilled(label.min(), label.max(), ink(theme::plot, 210), 3);
  draw_text(list, label, text, theme::bright, Align::Center);
}

}  // namespace

const Bands* TimelinePlaces::find_curve(const Opened& opened) const {
  const auto found =
      std::ranges::find_if(curves, [&](const auto& curve) { return &curve->opened() == &opened; });
  return found == curves.end() ? nullptr : found->get();
}

const TimeMap& TimelinePlaces::map_of(const Opened& opened) const {
  static const TimeMap own_time;
  const auto found =
      std::ranges::find(maps, &opened, [](const auto& entry) { return entry.first; });
  return found == maps.end() ? own_time : found->second;
}

const Bands& TimelinePlaces::curve_of(const Opened& opened) const {
  const Bands* const found = find_curve(opened);
  CHECK(found);
  return *found;
}

void draw_timeline(ViewModel& model, ViewState& view) {
  const TimelinePlaces places = place_everything(model, view);
  const Opened& opened = *model.shown(view);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ImGui::InvisibleButton("plot", {places.all.width(), places.all.height()},
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                             ImGuiButtonFlags_MouseButtonMiddle);
  // What is under the mouse is found before drawing, so that the picture and the tooltip agree.
  const Hovered hovered = hovered_in(places, ImGui::GetIO().MousePos);
  view.facts.left = places.time.x0, view.facts.right = places.time.x1;
  view.facts.lanes = places.lanes.front().box.y0, view.facts.mini_map = places.mini_map.y0;
  view.facts.modules = places.modules.y0;
  for (const auto& lane : places.lanes)
    if (lane.stage && view.facts.rank_lanes++ == 0) view.facts.first_rank_lane = lane.box.y0;
  view.facts.memory_top = places.memory.y0, view.facts.memory_bottom = places.memory.y1;

  list.PushClipRect(places.all.min(), places.all.max(), true);
  list.AddRectFilled({places.time.x0, places.axis.y1}, {places.time.x1, places.memory.y1},
                     ink(theme::plot));
  for (const auto& lane : places.lanes) draw_lane_label(list, places, lane, model, view);
  if (const Ranks* ranks = model.ranks_of(view.shown)) draw_rank_labels(list, places, *ranks);
  if (places.key.height() > 0)
    draw_keys(list, places.key, color_key(opened, view.color_by), theme::faint);
  if (model.aligns_phases(view))
    draw_text(list, {places.all.x0 + 2, places.axis.y0, places.axis.x0 - 6, places.axis.y1},
              "time of A", theme::faint, Align::Right);
  draw_memory_curve(list, places, model, view);
  list.PushClipRect(places.time_area().min(), places.time_area().max(), true);
  draw_time_axis(list, places, view);
  draw_phases(list, places, model, view);
  draw_modules(list, places, opened, view);
  for (const auto& lane : places.lanes) draw_lane(list, places, lane, view);
  draw_note_marks(list, places, model, view);
  draw_moment(list, places, view.cursor_time, theme::bright);
  if (view.hover) draw_moment(list, places, *view.hover, theme::accent);
  if (view.range) draw_range(list, places, opened, *view.range);
  list.PopClipRect();
  draw_reading(list, places, model, view);
  list.PushClipRect(places.time_area().min(), places.time_area().max(), true);
  draw_relations(list, places, opened, view);
  list.PopClipRect();
  if (places.mini_map.height() > 0) draw_mini_map(list, places, opened, view);
  list.PopClipRect();
  use_hands(places, hovered, model, view);
}

}  // namespace tidemark::gui
