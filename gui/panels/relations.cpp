// Arrows between runs: from where a tensor is written to the last that reads it, which is when its
// memory is given back.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// More arrows than this hide each other; the largest are shown, and how many are not is said.
constexpr std::size_t most_arrows = 12;
// As many can carry a name each; the details list all of them.
constexpr std::size_t most_labelled = 4;

struct Arrow {
  RunId from, to;
  BufferId buffer;
};

struct Arrows {
  std::vector<Arrow> drawn;  ///< at most most_arrows
  std::size_t all = 0;
  bool name_readers = false;  ///< of one tensor: they differ by who reads it
};

// Where a run touches the arrows: the middle of it, as far as it can be seen.
ImVec2 foot(const TimelinePlaces& places, const Opened& opened, RunId run) {
  const TimedRun& timed = opened[run];
  const auto middle = static_cast<double>(timed.begin.count() + timed.end.count()) / 2;
  // Far outside is as good as just outside, and keeps coordinates small.
  const float x = std::clamp(places.time.to_pixel(middle), places.time.x0 - 4 * places.em,
                             places.time.x1 + 4 * places.em);
  for (const auto& lane : places.lanes)
    if (lane.opened == &opened && lane.stream == index(timed.stream)) return {x, lane.box.y1};
  return {x, places.axis.y1};
}

// Down from one run, along, and up to the other: level in between, whatever the distance, so that
// arrows do not cross and what they cover is little.
void draw_path(ImDrawList& list, ImVec2 a, ImVec2 b, float lowest, float radius, ImU32 color,
               float thickness) {
  const float turn = std::clamp((b.x - a.x) / 2, -radius, radius);
  list.PathLineTo(a);
  list.PathBezierCubicCurveTo({a.x, lowest}, {a.x, lowest}, {a.x + turn, lowest});
  list.PathBezierCubicCurveTo({b.x - turn, lowest}, {b.x, lowest}, {b.x, lowest - radius});
  list.PathLineTo(b);
  list.PathStroke(color, 0, thickness);
}

void draw_arrow(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                const Arrow& arrow, float lowest) {
  const ImVec2 a = foot(places, opened, arrow.from), b = foot(places, opened, arrow.to);
  const ImU32 color = ink(color_of(opened.schedule()[arrow.buffer].category), 235);
  const float radius = 1.2F * places.em;
  draw_path(list, a, b, lowest, radius, ink(theme::ground, 150), 4);
  draw_path(list, a, b, lowest, radius, color, 2);
  const float r = 0.3F * places.em;
  list.AddTriangleFilled({b.x, b.y}, {b.x + r, b.y + 1.7F * r}, {b.x - r, b.y + 1.7F * r}, color);
  list.AddCircleFilled(a, 0.6F * r, color);
}

// What the arrow stands for, where it hangs lowest.
void label_arrow(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                 const Arrow& arrow, const std::string& label, float lowest) {
  const Axis& time = places.time;
  const ImVec2 a = foot(places, opened, arrow.from), b = foot(places, opened, arrow.to);
  const float width = text_width(label) + 0.6F * places.em;
  const float middle =
      (std::max(std::min(a.x, b.x), time.x0) + std::min(std::max(a.x, b.x), time.x1)) / 2;
  const float x = std::clamp(middle - width / 2, time.x0, std::max(time.x0, time.x1 - width));
  const Box box{x, lowest - 0.6F * places.em, x + width, lowest + 0.65F * places.em};
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot, 225), 3);
  draw_text(list, box, label, theme::text, Align::Center);
}

Arrows arrows_of_run(const Opened& opened, RunId run) {
  std::vector<Arrow> arrows;
  for (const BufferId buffer :
       writes_of(opened.schedule(), opened.schedule().steps[opened[run].step]))
    if (const auto reader = opened.buffers().last_reader(buffer); reader && *reader != run)
      arrows.push_back({run, *reader, buffer});
  std::ranges::stable_sort(arrows, std::ranges::greater{}, [&](const Arrow& arrow) {
    return opened.schedule()[arrow.buffer].size;
  });
  const std::size_t all = arrows.size();
  if (all > most_arrows) arrows.resize(most_arrows);
  return {std::move(arrows), all};
}

// To the first that use it: a parameter of a long recording has a million.
Arrows arrows_of_buffer(const Opened& opened, BufferId buffer) {
  Arrows arrows;
  arrows.name_readers = true;
  const auto writer = opened.buffers().first_writer(buffer);
  if (!writer) return arrows;
  for (const std::uint32_t user : opened.buffers().runs_of(buffer)) {
    if (RunId{user} == *writer) continue;
    ++arrows.all;
    if (arrows.drawn.size() < most_arrows) arrows.drawn.push_back({*writer, RunId{user}, buffer});
  }
  return arrows;
}

std::string label_of(const Opened& opened, const Arrow& arrow, bool names_reader) {
  if (names_reader) return opened.describe(arrow.to);
  return fmt::format("{}, {}", opened.describe(arrow.buffer),
                     to_text(opened.schedule()[arrow.buffer].size));
}

}  // namespace

void draw_relations(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                    const ViewState& view) {
  Arrows arrows;
  if (view.selection.run) arrows = arrows_of_run(opened, *view.selection.run);
  if (view.selection.buffer) arrows = arrows_of_buffer(opened, *view.selection.buffer);
  const std::size_t drawn = arrows.drawn.size();
  const bool has_labels = drawn <= most_labelled;
  const auto lowest = [&](std::size_t i) {
    return places.memory.y0 +
           (0.9F + (has_labels ? 1.6F : 0.7F) * static_cast<float>(i)) * places.em;
  };
  for (std::size_t i = 0; i < drawn; ++i)
    draw_arrow(list, places, opened, arrows.drawn[i], lowest(i));
  for (std::size_t i = 0; i < drawn && has_labels; ++i)
    label_arrow(list, places, opened, arrows.drawn[i],
                label_of(opened, arrows.drawn[i], arrows.name_readers), lowest(i));
  if (drawn == arrows.all) return;
  const std::string text =
      arrows.name_readers ? fmt::format("the first {} of {} uses", drawn, arrows.all)
                          : fmt::format("{} of {} arrows, the largest tensors", drawn, arrows.all);
  const Box box{places.memory.x0 + 4, places.memory.y0 + 1.4F * places.em,
                places.memory.x0 + 12 + text_width(text), places.memory.y0 + 2.7F * places.em};
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot, 225), 3);
  draw_text(list, box, text, theme::text, Align::Center);
}

}  // namespace tidemark::gui
