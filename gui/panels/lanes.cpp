// The runs of a stream: boxes where they are wide enough, folded cells where they are not.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// What is narrower than this many pixels is folded.
constexpr double narrowest = 3;

constexpr Color optimizer_color = kind_colors.back();

bool is_recovery(Task task) {
  return task == Task::Recompute || task == Task::Reconstruct || task == Task::Quantize ||
         task == Task::Dequantize;
}

// "attn.qkv" of "blocks.3.attn.qkv": the block can be seen from where it is.
std::string_view short_name(const Opened& opened, RunId run) {
  const OpId op = opened.op_of(run);
  if (op == no_op) {
    const Run* of_step = opened.run_of(run);
    return of_step ? to_string(of_step->task) : std::string_view("copy");
  }
  const std::string_view name = opened.trace()[op].name;
  const std::int32_t block = opened.trace()[op].block;
  if (block < 0) return name;
  const std::string_view prefix = opened.trace().blocks[static_cast<std::size_t>(block)].name;
  return name.starts_with(prefix) && name.size() > prefix.size() + 1
             ? name.substr(prefix.size() + 1)
             : name;
}

// Other classes of ranks have other blocks of the same number.
bool is_dimmed(const TimelinePlaces::Lane& lane, RunId run, const ViewState& view) {
  if (view.selection.block < 0 || lane.stage) return false;
  const Opened& opened = *lane.opened;
  const OpId op = opened.op_of(run);
  return op == no_op || opened.trace()[op].block != view.selection.block;
}

void draw_cell(ImDrawList& list, const TimelinePlaces& places, const TimelinePlaces::Lane& lane,
               Cell cell, const ViewState& view) {
  const Opened& opened = *lane.opened;
  const TrackIndex& track = opened.lanes()[lane.stream];
  // The longest stands for all of a cell: short ones next to it would flicker while zooming.
  const RunId run{track.item_of(track.longest_of(cell))};
  const std::int64_t begin = track.begin_of(cell.first), end = track.end_of(cell.last - 1);
  const float x0 = std::max(places.time.x0 - 2, places.x_of(opened, static_cast<double>(begin)));
  const float x1 =
      std::min(places.time.x1 + 2, std::max(x0 + 1, places.x_of(opened, static_cast<double>(end))));
  Color color = color_of(opened, run, view.color_by);
  if (cell.is_folded()) {
    // As bright as it is busy: gaps between folded runs are not hidden.
    const double busy = static_cast<double>(track.covered(begin, end)) /
                        static_cast<double>(std::max<std::int64_t>(1, end - begin));
    color = mixed(theme::plot, mixed(color, theme::folded, 0.35), 0.25 + 0.75 * busy);
  }
  if (is_dimmed(lane, run, view)) color = mixed(theme::plot, color, 0.3);
  const Box& box = lane.box;
  // A pixel of ground between boxes that are wide enough to spare it.
  list.AddRectFilled({x0, box.y0}, {x1 - (x1 - x0 > 3 ? 1 : 0), box.y1}, ink(color));
  const Run* of_step = opened.run_of(run);
  if (of_step && is_recovery(of_step->task) && view.color_by == ColorBy::Kind)
    list.AddRectFilled({x0, box.y1 - std::min(0.3F * places.em, box.height() / 3)},
                       {x1 - (x1 - x0 > 3 ? 1 : 0), box.y1}, ink(color_of(of_step->task)));
  const Box label{x0 + 4, box.y0, x1 - 4, box.y1 - 1};
  if (!cell.is_folded() && label.width() > 2 * places.em && label.height() > 0.8F * places.em)
    draw_text(list, label, short_name(opened, run), text_color_on(color));
}

constexpr float narrowest_mark = 3;  // pixels

// False outside of what is visible.
bool mark(ImDrawList& list, const TimelinePlaces& places, const TimelinePlaces::Lane& lane,
          const TimedRun& run, ImU32 color, float thickness) {
  const float x0 = places.x_of(*lane.opened, static_cast<double>(run.begin.count()));
  const float x1 = std::max(x0 + narrowest_mark,
                            places.x_of(*lane.opened, static_cast<double>(run.end.count())));
  if (x1 < places.time.x0 || x0 > places.time.x1) return false;
  list.AddRect({x0 - 1, lane.box.y0 - 1}, {x1 + 1, lane.box.y1 + 1}, color, 2, 0, thickness);
  return true;
}

// An op runs forward, backward, and again where it is recomputed: all are marked. A recording of
// many steps has thousands on a pixel: of those that begin within one mark, the first is. How many.
std::size_t mark_selected(ImDrawList& list, const TimelinePlaces& places,
                          const TimelinePlaces::Lane& lane, const ViewState& view) {
  const OpId op = view.selection.op;
  if (op == no_op || lane.stage || index(op) >= lane.opened->trace().ops.size()) return 0;
  const Opened& opened = *lane.opened;
  const auto runs = opened.runs_of(op);
  const auto is_here = [&](std::uint32_t id) {
    return index(opened[RunId{id}].stream) == lane.stream;
  };
  const auto first_from = [&](auto begin, float x) {
    return std::ranges::lower_bound(
        begin, runs.end(), places.moment_at(opened, x), {},
        [&](std::uint32_t id) { return static_cast<double>(opened[RunId{id}].begin.count()); });
  };
  auto next = first_from(runs.begin(), places.time.x0);
  // One that begins before what is visible may reach into it.
  for (bool found = false; next != runs.begin() && !found;) found = is_here(*--next);
  std::size_t marks = 0;
  while (next != runs.end()) {
    const std::uint32_t id = *next++;
    if (!is_here(id)) continue;
    const bool is_marked = view.selection.run != RunId{id} &&
                           mark(list, places, lane, opened[RunId{id}], ink(theme::accent), 1.5F);
    marks += is_marked ? 1 : 0;
    const float x = places.x_of(opened, static_cast<double>(opened[RunId{id}].begin.count()));
    if (x > places.time.x1) break;
    if (x >= places.time.x0) next = first_from(next, x + narrowest_mark);
  }
  const auto the_one = view.selection.run;
  const bool is_marked = the_one && index(*the_one) < opened.timeline().runs.size() &&
                         opened.op_of(*the_one) == op &&
                         is_here(static_cast<std::uint32_t>(*the_one)) &&
                         mark(list, places, lane, opened[*the_one], ink(theme::bright), 2.5F);
  return marks + (is_marked ? 1 : 0);
}

// The cells of a lane that `visible` of the axis shows, each once: one that goes over a knot of the
// map is met on both sides of it.
template <typename Visit>
void visit_cells(const TimelinePlaces& places, const TimelinePlaces::Lane& lane, Range visible,
                 Visit visit) {
  const TrackIndex& track = lane.opened->lanes()[lane.stream];
  std::size_t next = 0;
  places.map_of(*lane.opened).visit(visible, [&](Range part, double pace) {
    track.visit(part, narrowest * places.time.per_pixel() * pace, [&](Cell cell) {
      cell.first = std::max(cell.first, next);
      if (cell.first >= cell.last) return;
      next = cell.last;
      visit(cell);
    });
  });
}

}  // namespace

Color color_of(const Opened& opened, RunId run, ColorBy by) {
  const Run* of_step = opened.run_of(run);
  if (!of_step) return copy_color;
  if (by == ColorBy::Task) return color_of(of_step->task);
  if (of_step->op == no_op) return optimizer_color;
  return kind_classes[static_cast<std::size_t>(class_of(opened.trace()[of_step->op].kind))].color;
}

std::vector<KeyEntry> color_key(const Opened& opened, ColorBy by) {
  std::vector<KeyEntry> key;
  const auto add = [&](std::string_view name, Color color) {
    key.push_back({std::string(name), color});
  };
  if (by == ColorBy::Task) {
    for (const auto& row : task_colors)
      if (opened.has(row.value)) add(to_string(row.value), row.color);
    if (opened.has_copies()) add("copy", copy_color);
    return key;
  }
  for (const KindClassRow& row : kind_classes)
    if (opened.has(row.value)) add(row.name, row.color);
  if (opened.has(Task::Optimizer)) add("optimizer", optimizer_color);
  for (const auto& row : task_colors)
    if (is_recovery(row.value) && opened.has(row.value))
      key.push_back({std::string(to_string(row.value)), row.color, 0, true});
  if (opened.has_copies()) add("copy", copy_color);
  return key;
}

void draw_lane(ImDrawList& list, const TimelinePlaces& places, const TimelinePlaces::Lane& lane,
               ViewState& view) {
  visit_cells(places, lane, places.time.range, [&](Cell cell) {
    draw_cell(list, places, lane, cell, view);
    ++view.facts.cells;
    view.facts.runs += cell.count();
  });
  view.facts.marks += mark_selected(list, places, lane, view);
}

Hovered hovered_in(const TimelinePlaces& places, ImVec2 mouse) {
  Hovered hovered;
  if (mouse.x < places.time.x0) return hovered;
  for (const auto& lane : places.lanes) {
    if (!lane.box.contains(mouse)) continue;
    hovered.lane = lane;
    const TrackIndex& track = lane.opened->lanes()[lane.stream];
    const double moment = places.time.to_value(mouse.x);
    // The same cells as are drawn: from a little before the mouse, because a cell may begin there.
    const double pixel = places.time.per_pixel();
    const TimeMap& map = places.map_of(*lane.opened);
    visit_cells(places, lane, {moment - 2 * narrowest * pixel, moment + pixel}, [&](Cell cell) {
      const double begin = map.to_axis(static_cast<double>(track.begin_of(cell.first)));
      const double end = map.to_axis(static_cast<double>(track.end_of(cell.last - 1)));
      if (begin > moment || std::max(end, begin + pixel) <= moment) return;
      hovered.cell = cell;
      hovered.run = RunId{track.item_of(track.longest_of(cell))};
    });
  }
  return hovered;
}

}  // namespace tidemark::gui
