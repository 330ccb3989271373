// The modules over the lanes: blocks, and closer up what is in them.
#include <fmt/format.h>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// Narrower boxes are folded, as those of lanes are.
constexpr float narrowest_module = 3;  // pixels

// From this width on the modules within a block have room for their names.
constexpr float wide_block = 18;  // em

// The inner modules as soon as those at both sides of the middle are wide.
bool goes_in(const TimelinePlaces& places, const Opened& opened) {
  const TrackIndex& track = opened.module_track();
  const double span = wide_block * static_cast<double>(places.em) * places.time.per_pixel();
  const double middle = (places.time.range.begin + places.time.range.end) / 2;
  std::size_t at = track.first_after(middle);
  if (at == track.size()) return false;
  return static_cast<double>(track.end_of(at) - track.begin_of(at)) > span;
}

struct ShownTrack {
  const TrackIndex& track;
  const Modules& modules;
};

ShownTrack shown_of(const TimelinePlaces& places, const Opened& opened) {
  if (goes_in(places, opened)) return {opened.inner_module_track(), opened.inner_modules()};
  return {opened.module_track(), opened.modules()};
}

bool is_marked(const Modules& modules, const Module& module, const Selection& selection) {
  if (selection.block >= 0) return module.block == selection.block;
  if (selection.op == no_op) return false;
  return modules.all[modules.of_op[index(selection.op)]].name == module.name;
}

// The last part of the path where all of it has no room: "3" of "blocks.3".
std::string_view short_module(std::string_view name, float width) {
  return text_width(name) <= width ? name : name.substr(name.rfind('.') + 1);
}

void draw_cell(ImDrawList& list, const TimelinePlaces& places, const ShownTrack& shown, Cell cell,
               const ViewState& view) {
  const Box& row = places.modules;
  const auto x_of = [&](std::int64_t moment) {
    return std::clamp(places.time.to_pixel(static_cast<double>(moment)), row.x0, row.x1);
  };
  const float x0 = x_of(shown.track.begin_of(cell.first));
  const float x1 = std::max(x0 + 1, x_of(shown.track.end_of(cell.last - 1)) - 1);
  const Module& module = shown.modules.all[shown.track.item_of(shown.track.longest_of(cell))];
  const bool is_bright = !cell.is_folded() && is_marked(shown.modules, module, view.selection);
  // Neighbours differ, and a block looks the same in forward and backward.
  const bool is_odd = module.block % 2 != 0;
  const Color color = is_bright ? theme::accent : is_odd ? theme::folded : theme::line;
  list.AddRectFilled({x0, row.y0}, {x1, row.y1}, ink(color, cell.is_folded() ? 110 : 255), 2);
  if (!cell.is_folded() && x1 - x0 > 1.5F * places.em)
    draw_text(list, {x0 + 3, row.y0, x1 - 3, row.y1}, short_module(module.name, x1 - x0 - 6),
              is_bright ? text_color_on(color) : theme::text, Align::Center);
}

}  // namespace

bool has_modules(const Opened& opened) { return opened.module_track().size() > 1; }

void draw_modules(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                  const ViewState& view) {
  if (places.modules.height() <= 0) return;
  const ShownTrack shown = shown_of(places, opened);
  shown.track.visit(places.time.range, narrowest_module * places.time.per_pixel(),
                    [&](Cell cell) { draw_cell(list, places, shown, cell, view); });
}

const Module* module_under(const TimelinePlaces& places, const Opened& opened, ImVec2 mouse) {
  if (!places.modules.contains(mouse)) return nullptr;
  const ShownTrack shown = shown_of(places, opened);
  const std::size_t at = shown.track.at(places.time.to_value(mouse.x));
  return at == shown.track.size() ? nullptr : &shown.modules.all[shown.track.item_of(at)];
}

}  // namespace tidemark::gui
