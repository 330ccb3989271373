// Live bytes over time: each pixel column shows the highest moment in it, as a stack of bands.
#include <fmt/format.h>

#include <algorithm>

#include "gui/navigation.h"
#include "gui/panels/curve_stack.h"

namespace tidemark::gui {
namespace {

// A horizontal line: what memory there is, or what the step takes.
struct Level {
  std::string_view name;
  Bytes bytes;
  Color color;
};

std::vector<Level> levels_of(const Opened& opened, const Report* report) {
  const Recording& recording = opened.recording;
  std::vector<Level> levels{{"arena", recording.planned, theme::faint}};
  if (report) levels.push_back({"reserved", report->reserved_peak, theme::faint});
  if (opened.has_budget()) {
    levels.push_back({"budget", recording.capacity, theme::alarm});
    levels.push_back({"capacity", opened.device_capacity(), theme::faint});
  } else {
    levels.push_back({"capacity", recording.capacity, theme::alarm});
  }
  std::erase_if(levels, [](const Level& level) { return level.bytes.count == 0; });
  return levels;
}

// The top of the picture, in bytes. A level belongs into it unless that would flatten the curve.
double top_of(const TimelinePlaces& places, const Opened& opened,
              const std::vector<const Opened*>& overlaid, const std::vector<Level>& levels) {
  const auto height = [&](const Opened& one) {
    const Bands& curve = places.curve_of(one);
    return static_cast<double>(curve.total_of(curve.highest()).count);
  };
  double top = std::max(1.0, height(opened));
  for (const Opened* other : overlaid) top = std::max(top, height(*other));
  double highest = top;
  for (const Level& level : levels)
    if (const auto bytes = static_cast<double>(level.bytes.count); bytes <= 1.6 * top)
      highest = std::max(highest, bytes);
  return 1.02 * highest;
}

// Another recording's total, as a line over the stack. Boxes, because steps of a pixel or less make
// spikes of a polyline's corners.
void draw_outline(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                  const Heights& height, Color color, float thickness) {
  for (const bool is_halo : {true, false}) {  // dark first, so that the line shows on any color
    const float half = thickness / 2 + (is_halo ? 1.2F : 0);
    const ImU32 tint = is_halo ? ink(theme::ground, 150) : ink(color);
    std::optional<float> before;
    visit_columns(places, opened, [&](float x0, float x1, StateId state) {
      const float y = height(places.curve_of(opened).total_of(state));
      list.AddRectFilled({x0 - half, y - half}, {x1 + half, y + half}, tint);
      if (before)
        list.AddRectFilled({x0 - half, std::min(*before, y)}, {x0 + half, std::max(*before, y)},
                           tint);
      before = y;
    });
  }
}

void draw_dashes(ImDrawList& list, const TimelinePlaces& places, float y, Color color) {
  const float dash = 0.5F * places.em;
  for (float x = places.time.x0; x < places.time.x1; x += 2 * dash)
    list.AddLine({x, y}, {std::min(x + dash, places.time.x1), y}, ink(color, 200), 1.5F);
}

bool is_below(const Level& level, const Heights& height) {
  return static_cast<double>(level.bytes.count) < height.bottom;
}

bool is_above(const Level& level, const Heights& height) {
  return static_cast<double>(level.bytes.count) > height.top;
}

// Before any label: a line through a name is hard to read.
void draw_levels(ImDrawList& list, const TimelinePlaces& places, const std::vector<Level>& levels,
                 const Heights& height) {
  for (const Level& level : levels)
    if (!is_above(level, height)) draw_dashes(list, places, height(level.bytes), level.color);
}

// Levels above the picture are named in its corner.
void name_levels(ImDrawList& list, const TimelinePlaces& places, const std::vector<Level>& levels,
                 const Heights& height, CurveLabels& labels) {
  std::string above;
  for (const Level& level : levels) {
    const std::string text = fmt::format("{} {}", level.name, to_text(level.bytes));
    if (is_below(level, height)) continue;
    if (is_above(level, height)) {
      above += (above.empty() ? "" : ", ") + text;
    } else {
      labels.put_along(list, text, level.color, height(level.bytes));
    }
  }
  if (above.empty()) return;
  draw_text(
      list,
      {places.time.x0, places.memory.y0, places.time.x1 - 6, places.memory.y0 + 1.3F * places.em},
      above + ": above the picture", theme::faint, Align::Right);
}

void draw_byte_axis(ImDrawList& list, const TimelinePlaces& places, const Heights& height) {
  const Range range{height.bottom, height.top};
  const double spacing = 2 * static_cast<double>(places.em / height.box.height()) * range.span();
  const Ticks ticks = binary_ticks(range, spacing);
  for (double bytes = ticks.first; bytes < height.top; bytes += ticks.step) {
    const float y = std::floor(height(Bytes{static_cast<std::int64_t>(bytes)}));
    if (y < places.memory.y0 + places.em / 2) break;
    list.AddLine({places.time.x0, y}, {places.time.x1, y}, ink(theme::line, 130));
    draw_text(list, {places.all.x0, y - places.em, places.time.x0 - 6, y + places.em},
              byte_tick_text(bytes, ticks.step), theme::faint, Align::Right);
  }
}

// The longest text that leaves most of the width to the curve: how much, what, and for which run.
std::string peak_text(const Opened& opened, const Bands& curve, const CurveChoice& choice,
                      float width) {
  if (!choice.is_whole())
    return fmt::format("{} at most, {}", to_text(curve.total_of(curve.highest())),
                       choice.left_out());
  if (!has_memory(opened.recording)) return "no memory was recorded";
  const StateId peak = opened.peak();
  const Bytes bytes = opened.memory().total_of(peak);
  std::string text = "peak " + to_text(bytes);
  if (bytes.count <= 0) return text;
  const BytesByCategory parts = opened.memory().categories_of(peak);
  const auto largest = std::ranges::max_element(parts);
  const std::string what =
      fmt::format("{}: {:.0f} % {}", text,
                  100 * static_cast<double>(largest->count) / static_cast<double>(bytes.count),
                  to_string(static_cast<Category>(largest - parts.begin())));
  if (text_width(what) < width) text = what;
  const auto maker = opened.maker_of_peak();
  if (!maker) return text;
  const std::string why = fmt::format("{}, {}", what, opened.describe(*maker));
  return text_width(why) < width ? why : text;
}

void draw_peak(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
               const Heights& height, std::string_view text, Color color, CurveLabels& labels) {
  const Bands& curve = places.curve_of(opened);
  const StateId peak = curve.highest();
  const float x = places.x_of(opened, static_cast<double>(opened.memory().begin_of(peak).count()));
  const float y = height(curve.total_of(peak));
  // Zoomed in, the peak may be outside of the picture.
  if (x < places.time.x0 || x > places.time.x1 || y < places.memory.y0 || y > places.memory.y1)
    return;
  labels.put_above(list, text, color, {x, y});
}

// What lies over the stack is called B, C, …, as the lanes and the reading call it.
void draw_outlines(ImDrawList& list, const TimelinePlaces& places,
                   const std::vector<const Opened*>& overlaid, const Heights& height) {
  for (std::size_t i = overlaid.size(); i-- > 0;)  // B is drawn last: on top
    draw_outline(list, places, *overlaid[i], height, outline_color(i), i == 0 ? 1.8F : 1.2F);
}

// What a lever would make of it.
void draw_imagined(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                   const Heights& height, CurveLabels& labels) {
  const auto made = model.imagined();
  if (!made || !places.find_curve(*made->opened)) return;
  draw_outline(list, places, *made->opened, height, theme::accent, 1.8F);
  const std::string text = fmt::format("{}: {}", model.imagines(), to_text(made->report.live_peak));
  draw_peak(list, places, *made->opened, height, text, theme::accent, labels);
}

void draw_peaks(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                const std::vector<const Opened*>& overlaid, const CurveChoice& choice,
                const Heights& height, CurveLabels& labels) {
  const std::string text =
      peak_text(opened, places.curve_of(opened), choice, 0.55F * places.memory.width());
  draw_peak(list, places, opened, height, text, theme::bright, labels);
  for (std::size_t i = 0; i < overlaid.size(); ++i) {
    const Bytes peak = overlaid[i]->memory().total_of(overlaid[i]->peak());
    draw_peak(list, places, *overlaid[i], height,
              fmt::format("{} {}", recording_letter(i + 1), to_text(peak)), outline_color(i),
              labels);
  }
}

// When the selected buffer lives: a bar at the bottom.
void draw_life(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
               const ViewState& view) {
  if (!view.selection.buffer) return;
  const BufferId id = *view.selection.buffer;
  const StateId last = opened.buffers().last_state(id);
  const double begin =
      static_cast<double>(opened.memory().begin_of(opened.buffers().first_state(id)).count());
  const double end = last < opened.memory().states()
                         ? static_cast<double>(opened.memory().begin_of(last).count())
                         : opened.end();
  const float x0 = std::max(places.time.x0, places.time.to_pixel(begin));
  const float x1 = std::min(places.time.x1, std::max(x0 + 2, places.time.to_pixel(end)));
  if (x0 >= x1) return;
  const float y = places.memory.y1 - 0.8F * places.em;
  list.AddRectFilled({x0, places.memory.y0}, {x1, places.memory.y1}, ink(theme::bright, 26));
  list.AddRectFilled({x0, y}, {x1, places.memory.y1 - 2},
                     ink(color_of(opened.schedule()[id].category)), 2);
  list.AddRect({x0, y}, {x1, places.memory.y1 - 2}, ink(theme::bright), 2, 0, 1.5F);
  const std::string text =
      fmt::format("{}, {}", opened.describe(id), to_text(opened.schedule()[id].size));
  const Box label{x0 + 4, y - 1.4F * places.em, std::max(x1, x0 + text_width(text) + 12), y - 2};
  list.AddRectFilled(label.min(), {label.x0 + text_width(text) + 8, label.y1},
                     ink(theme::plot, 190), 3);
  draw_text(list, {label.x0 + 4, label.y0, places.time.x1, label.y1}, text, theme::bright);
}

// While a button is down the axis stays where it is, and doubles where that is too low: a picture
// that is scaled anew at each move says nothing about the move.
double held_top(double top, ViewState& view) {
  const bool is_held = ImGui::IsMouseDown(0) && !ImGui::IsMouseClicked(0) && view.curve_top > 0;
  if (!is_held) return view.curve_top = top;
  while (view.curve_top < top) view.curve_top *= 2;
  return view.curve_top;
}

// Room for the label of the highest peak, and for a line about what is above the picture.
float headroom(const TimelinePlaces& places, const std::vector<Level>& levels, double top) {
  const bool is_any_above = std::ranges::any_of(
      levels, [&](const Level& level) { return static_cast<double>(level.bytes.count) > top; });
  return std::min((is_any_above ? 2.6F : 1.4F) * places.em, places.memory.height() / 3);
}

// All of it with room above; or what was zoomed to, as it is.
Heights heights_of(const TimelinePlaces& places, const std::vector<Level>& levels, double top,
                   ViewState& view) {
  Heights height{places.memory, held_top(top, view)};
  view.facts.byte_top = height.top;
  if (view.bytes) {
    height.bottom = view.bytes->begin, height.top = view.bytes->end;
    return height;
  }
  height.box.y0 += headroom(places, levels, height.top);
  return height;
}

}  // namespace

StateId state_under(const TimelinePlaces& places, const Opened& opened, float x) {
  const float column = std::floor(x);
  return places.curve_of(opened).highest_in(places.moment_at(opened, column),
                                            places.moment_at(opened, column + 1));
}

void draw_memory_curve(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                       ViewState& view) {
  const Opened& opened = *model.shown(view);
  const std::vector<const Opened*> overlaid = model.overlaid(view);
  const auto knows_memory = [](const Opened* one) { return has_memory(one->recording); };
  if (!knows_memory(&opened) && std::ranges::none_of(overlaid, knows_memory))
    return draw_text(list, places.memory, "no memory was recorded", theme::faint, Align::Center);
  const Opened* const before = model.is_prediction(view.shown) ? model.before().get() : nullptr;
  // A part of the memory says nothing about what holds all of it.
  const std::vector<Level> levels =
      view.curve.is_whole() ? levels_of(opened, model.report_of(view.shown)) : std::vector<Level>();
  auto all = overlaid;
  if (before) all.push_back(before);
  const Heights height = heights_of(places, levels, top_of(places, opened, all, levels), view);
  CurveLabels labels(places, opened, overlaid, height);
  draw_byte_axis(list, places, height);
  list.PushClipRect(places.memory.min(), places.memory.max(), true);
  draw_stack(list, places, places.curve_of(opened), height, view);
  view.facts.band = band_under(places, places.curve_of(opened), height, ImGui::GetIO().MousePos);
  if (before) draw_outline(list, places, *before, height, theme::faint, 1.2F);
  draw_outlines(list, places, overlaid, height);
  draw_life(list, places, opened, view);
  draw_levels(list, places, levels, height);
  draw_peaks(list, places, opened, overlaid, view.curve, height, labels);
  if (before)
    draw_peak(list, places, *before, height,
              "before " + to_text(before->memory().total_of(before->peak())), theme::faint, labels);
  draw_imagined(list, places, model, height, labels);
  name_levels(list, places, levels, height, labels);
  view.facts.covered = labels.covered();
  list.PopClipRect();
}

void draw_band_tooltip(const TimelinePlaces& places, const Opened& opened, const ViewState& view) {
  const StateId state = state_under(places, opened, ImGui::GetIO().MousePos.x);
  ImGui::BeginTooltip();
  Color color = theme::bright;
  for (const std::string& line : lines_of(places.curve_of(opened), *view.facts.band, state)) {
    text_line(line, color);
    color = theme::text;
  }
  ImGui::EndTooltip();
}

}  // namespace tidemark::gui
