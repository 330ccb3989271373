// Arrows between runs: from where a tensor is written to the last that reads it, which is when its
// memory is given back.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark {
namespace {

// More arrows than this hide each other; the largest are shown, and how many are not is said.
constexpr std::size_t most_arrows = 12;

struct Arrow {
  RunId from, to;
  BufferId buffer;
};

// Where a run touches the arrows: the middle of it, as far as it can be seen.
ImVec2 foot(const TimelinePlaces& places, const Opened& opened, RunId run) {
  const TimedRun& timed = opened[run];
  const auto middle = static_cast<double>(timed.begin.count() + timed.end.count()) / 2;
  for (const auto& lane : places.lanes)
    if (lane.opened == &opened && lane.stream == index(timed.stream))
      return {places.time.to_pixel(middle), lane.box.y1};
  return {places.time.to_pixel(middle), places.axis.y1};
}

void draw_arrow(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                const Arrow& arrow, float depth) {
  const ImVec2 a = foot(places, opened, arrow.from), b = foot(places, opened, arrow.to);
  const ImU32 color = ink(color_of(opened.schedule()[arrow.buffer].category), 235);
  const float low = std::max(a.y, b.y) + depth;
  list.AddBezierCubic(a, {a.x, low}, {b.x, low}, b, ink(theme::ground, 150), 4);
  list.AddBezierCubic(a, {a.x, low}, {b.x, low}, b, color, 2);
  const float r = 0.3F * places.em;
  list.AddTriangleFilled({b.x, b.y}, {b.x + r, b.y + 1.7F * r}, {b.x - r, b.y + 1.7F * r}, color);
  list.AddCircleFilled(a, 0.6F * r, color);
}

std::vector<Arrow> arrows_of_run(const Opened& opened, RunId run) {
  std::vector<Arrow> arrows;
  for (const BufferId buffer :
       writes_of(opened.schedule(), opened.schedule().steps[opened[run].step]))
    if (const auto reader = opened.buffers().last_reader(buffer); reader && *reader != run)
      arrows.push_back({run, *reader, buffer});
  return arrows;
}

std::vector<Arrow> arrows_of_buffer(const Opened& opened, BufferId buffer) {
  std::vector<Arrow> arrows;
  const auto writer = opened.buffers().first_writer(buffer);
  for (const std::uint32_t user : opened.buffers().runs_of(buffer))
    if (writer && RunId{user} != *writer) arrows.push_back({*writer, RunId{user}, buffer});
  return arrows;
}

}  // namespace

void draw_relations(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                    const ViewState& view) {
  std::vector<Arrow> arrows;
  if (view.selection.run) arrows = arrows_of_run(opened, *view.selection.run);
  if (view.selection.buffer) arrows = arrows_of_buffer(opened, *view.selection.buffer);
  if (arrows.empty()) return;
  std::ranges::stable_sort(arrows, std::ranges::greater{}, [&](const Arrow& arrow) {
    return opened.schedule()[arrow.buffer].size;
  });
  const std::size_t drawn = std::min(arrows.size(), most_arrows);
  for (std::size_t i = 0; i < drawn; ++i)
    draw_arrow(list, places, opened, arrows[i], (2.5F + 0.7F * static_cast<float>(i)) * places.em);
  if (drawn == arrows.size()) return;
  const std::string text =
      fmt::format("{} of {} arrows, the largest tensors", drawn, arrows.size());
  draw_text(list, places.key, text, theme::text, Align::Right);
}

}  // namespace tidemark
