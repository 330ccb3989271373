// Live bytes over time, stacked by category: each pixel column shows the highest moment in it.
#include <fmt/format.h>

#include <algorithm>

#include "gui/navigation.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark {
namespace {

// The top of the picture, in bytes. The capacity belongs into it unless that would flatten the
// rest.
double top_of(const Opened& opened, const Opened* against) {
  const auto height = [](const Opened& one) {
    return static_cast<double>(
        std::max(one.memory().total_of(one.peak()), one.recording.planned).count);
  };
  double top = std::max(1.0, height(opened));
  if (against) top = std::max(top, height(*against));
  const auto capacity = static_cast<double>(opened.recording.capacity.count);
  if (capacity <= 1.6 * top) top = std::max(top, capacity);
  return 1.08 * top;
}

struct Heights {
  Box box;
  double top;

  float operator()(Bytes bytes) const {
    return box.y1 - static_cast<float>(static_cast<double>(bytes.count) / top) * box.height();
  }
};

// Calls visit(x0, x1, state) for neighbouring columns that show the same state.
template <typename Visit>
void visit_columns(const TimelinePlaces& places, const Opened& opened, Visit visit) {
  const float first = std::max(places.time.x0, std::floor(places.time.to_pixel(0)));
  const float last = std::min(places.time.x1, std::ceil(places.time.to_pixel(opened.end())));
  float begin = first;
  std::optional<StateId> pending;
  for (float x = first; x < last; ++x) {
    const StateId state = state_under(places, opened, x);
    if (pending == state) continue;
    if (pending) visit(begin, x, *pending);
    pending = state;
    begin = x;
  }
  if (pending) visit(begin, last, *pending);
}

void draw_stack(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                const Heights& height, ViewState& view) {
  visit_columns(places, opened, [&](float x0, float x1, StateId state) {
    Bytes below;
    const BytesByCategory bytes = opened.memory().categories_of(state);
    for (std::size_t c = 0; c < category_count; ++c) {
      if (bytes[c].count <= 0) continue;
      const float bottom = height(below), top = height(below += bytes[c]);
      list.AddRectFilled({x0, top}, {x1, bottom}, ink(category_colors[c].color, 225));
    }
    const float top = height(below);
    list.AddRectFilled({x0, top - 1}, {x1, top}, ink(theme::bright, 120));
    ++view.facts.columns;
  });
}

// The other recording's total, as a line over the stack.
void draw_outline(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                  const Heights& height) {
  std::vector<ImVec2> line;
  visit_columns(places, opened, [&](float x0, float x1, StateId state) {
    const float y = height(opened.memory().total_of(state));
    line.push_back({x0, y}), line.push_back({x1, y});
  });
  const auto count = static_cast<int>(line.size());
  list.AddPolyline(line.data(), count, ink(theme::ground, 160), 0, 4);
  list.AddPolyline(line.data(), count, ink(theme::bright), 0, 1.8F);
}

void draw_level(ImDrawList& list, const TimelinePlaces& places, float y, std::string_view text,
                Color color, Align align) {
  const float dash = 0.5F * places.em;
  for (float x = places.time.x0; x < places.time.x1; x += 2 * dash)
    list.AddLine({x, y}, {std::min(x + dash, places.time.x1), y}, ink(color, 200), 1.5F);
  const float width = text_width(text) + 8;
  const float x0 = align == Align::Left ? places.time.x0 + 4 : places.time.x1 - 4 - width;
  const Box box{x0, y + 2, x0 + width, y + 1.3F * places.em};
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot, 190), 3);
  draw_text(list, box, text, color, Align::Center);
}

void draw_levels(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                 const Heights& height) {
  const Recording& recording = opened.recording;
  if (recording.planned.count > 0)
    draw_level(list, places, height(recording.planned),
               fmt::format("arena {}", to_text(recording.planned)), theme::faint, Align::Left);
  if (recording.capacity.count == 0) return;
  const std::string text = fmt::format("capacity {}", to_text(recording.capacity));
  const float y = height(recording.capacity);
  if (y > places.memory.y0) return draw_level(list, places, y, text, theme::alarm, Align::Right);
  const float top = places.memory.y0 + 1.5F * places.em;  // below the reading
  draw_text(list, {places.time.x0, top, places.time.x1 - 6, top + 1.3F * places.em},
            text + ", above the picture", theme::faint, Align::Right);
}

void draw_byte_axis(ImDrawList& list, const TimelinePlaces& places, const Heights& height) {
  const double spacing = 2 * static_cast<double>(places.em / height.box.height()) * height.top;
  const Ticks ticks = binary_ticks({0, height.top}, spacing);
  for (double bytes = 0; bytes < height.top; bytes += ticks.step) {
    const float y = std::floor(height(Bytes{static_cast<std::int64_t>(bytes)}));
    if (y < places.memory.y0 + places.em / 2) break;
    list.AddLine({places.time.x0, y}, {places.time.x1, y}, ink(theme::line, 130));
    draw_text(list, {places.all.x0, y - places.em, places.time.x0 - 6, y + places.em},
              byte_tick_text(bytes, ticks.step), theme::faint, Align::Right);
  }
}

void draw_peak(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
               const Heights& height) {
  const Bytes bytes = opened.memory().total_of(opened.peak());
  const float x =
      places.time.to_pixel(static_cast<double>(opened.memory().begin_of(opened.peak()).count()));
  if (x < places.time.x0 || x > places.time.x1) return;
  const float y = height(bytes), r = 0.32F * places.em;
  list.AddTriangleFilled({x, y}, {x + r, y - 1.6F * r}, {x - r, y - 1.6F * r}, ink(theme::bright));
  const std::string text = "peak " + to_text(bytes);
  const float width = text_width(text) + 0.6F * places.em;
  const bool is_left = x + r + width > places.time.x1;
  const float x0 = is_left ? x - r - width - 2 : x + r + 2;
  const float top = std::max(places.memory.y0 + 1, y - 1.9F * r - places.em * 0.3F);
  const Box label{x0, top, x0 + width, top + 1.25F * places.em};
  list.AddRectFilled(label.min(), label.max(), ink(theme::plot, 210), 3);
  draw_text(list, label, text, theme::bright, Align::Center);
}

// The bytes of each category under the mouse, or at the cursor.
void draw_reading(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                  const ViewState& view) {
  const StateId state =
      view.hover ? state_under(places, opened, places.time.to_pixel(*view.hover)) : view.cursor;
  const BytesByCategory bytes = opened.memory().categories_of(state);
  float x = places.time.x0 + 6;
  const float y = places.memory.y0 + 3;
  const float limit = places.time.x1 - 4;
  const std::string sum = to_text(opened.memory().total_of(state)) + " live";
  list.AddRectFilled({places.time.x0, places.memory.y0},
                     {limit, places.memory.y0 + 1.5F * places.em}, ink(theme::plot, 190));
  draw_text(list, {x, y, limit, y + places.em}, sum, theme::text);
  x += text_width(sum) + places.em;
  for (std::size_t c = 0; c < category_count; ++c) {
    if (bytes[c].count == 0) continue;
    const std::string text =
        fmt::format("{} {}", to_string(static_cast<Category>(c)), to_text(bytes[c]));
    if (x + text_width(text) + 2 * places.em > limit) {
      draw_text(list, {x, y, limit, y + places.em}, "...", theme::faint);
      break;
    }
    x += draw_key(list, {x, y}, text, category_colors[c].color, theme::text);
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
}

}  // namespace

StateId state_under(const TimelinePlaces& places, const Opened& opened, float x) {
  const float column = std::floor(x);
  return opened.memory().highest_in(places.time.to_value(column), places.time.to_value(column + 1));
}

void draw_memory_curve(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                       ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Opened* against = model.against(view);
  const double top = top_of(opened, against);
  const bool is_capacity_above = static_cast<double>(opened.recording.capacity.count) > top;
  const float head = (is_capacity_above ? 2.8F : 1.5F) * places.em;  // two lines of text, or one
  const Heights height{
      {places.memory.x0, places.memory.y0 + head, places.memory.x1, places.memory.y1}, top};
  draw_byte_axis(list, places, height);
  list.PushClipRect(places.memory.min(), places.memory.max(), true);
  draw_stack(list, places, opened, height, view);
  if (against) draw_outline(list, places, *against, height);
  draw_levels(list, places, opened, height);
  draw_life(list, places, opened, view);
  draw_peak(list, places, opened, height);
  draw_reading(list, places, opened, view);
  list.PopClipRect();
}

}  // namespace tidemark
