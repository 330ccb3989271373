// Forward, backward, optimizer: brackets over the lanes, and how long each takes in all that is
// compared.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

std::string time_text(const Phase& phase) {
  return to_text(Nanoseconds{static_cast<std::int64_t>(phase.range.span())});
}

const Phase* phase_called(const Opened& opened, std::string_view name) {
  const auto found = std::ranges::find(opened.phases(), name, &Phase::name);
  return found == opened.phases().end() ? nullptr : &*found;
}

// Its width says how long it is, unless B's is drawn as wide.
std::string text_of(const Phase& phase, const ViewModel& model, const ViewState& view) {
  const Phase* other = nullptr;
  if (model.aligns_phases(view)) other = phase_called(*model.against(view), phase.name);
  if (!other) return std::string(phase.name);
  return fmt::format("{}: A {}, B {}", phase.name, time_text(phase), time_text(*other));
}

}  // namespace

void draw_phases(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                 const ViewState& view) {
  const Box& row = places.phases;
  if (row.height() <= 0) return;
  for (const Phase& phase : model.shown(view)->phases()) {
    const float x0 = std::max(row.x0, places.time.to_pixel(phase.range.begin));
    const float x1 = std::min(row.x1, places.time.to_pixel(phase.range.end));
    if (x1 <= x0) continue;
    list.AddRectFilled({x0, row.y0}, {std::max(x0 + 1, x1 - 2), row.y1}, ink(theme::line, 150), 2);
    draw_text(list, {x0 + 5, row.y0, x1 - 5, row.y1}, text_of(phase, model, view), theme::text);
  }
}

const Phase* phase_under(const TimelinePlaces& places, const Opened& opened, ImVec2 mouse) {
  if (!places.phases.contains(mouse)) return nullptr;
  const double moment = places.time.to_value(mouse.x);
  const auto found = std::ranges::find_if(opened.phases(), [&](const Phase& phase) {
    return phase.range.begin <= moment && moment < phase.range.end;
  });
  return found == opened.phases().end() ? nullptr : &*found;
}

std::vector<std::string> lines_of(const Phase& phase, const ViewModel& model,
                                  const ViewState& view) {
  const double step = model.shown(view)->end();
  std::vector<std::string> lines{
      std::string(phase.name),
      fmt::format("{}, {:.0f} % of the step", time_text(phase), 100 * phase.range.span() / step)};
  const std::vector<const Opened*> overlaid = model.overlaid(view);
  for (std::size_t i = 0; i < overlaid.size(); ++i)
    if (const Phase* other = phase_called(*overlaid[i], phase.name))
      lines.push_back(fmt::format("{}: {}, {:.2f} times as long", recording_letter(i + 1),
                                  time_text(*other), other->range.span() / phase.range.span()));
  return lines;
}

}  // namespace tidemark::gui
