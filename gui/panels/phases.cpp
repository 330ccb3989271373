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

// The same phase of the same step, if that has it.
const Phase* counterpart(const Opened& opened, const Phase& phase) {
  const auto found = std::ranges::find_if(opened.phases(), [&](const Phase& one) {
    return one.name == phase.name && one.step == phase.step;
  });
  return found == opened.phases().end() ? nullptr : &*found;
}

double length_of_step(const Opened& opened, std::size_t step) {
  double length = 0;
  for (const Phase& phase : opened.phases())
    if (phase.step == step) length += phase.range.span();
  return length;
}

std::string name_of(const Phase& phase, const Opened& opened) {
  const std::size_t steps = opened.phases().back().step + 1;
  return steps == 1 ? std::string(phase.name)
                    : fmt::format("{} of step {} of {}", phase.name, phase.step + 1, steps);
}

// Its width says how long it is, unless B's is drawn as wide.
std::string text_of(const Phase& phase, const ViewModel& model, const ViewState& view) {
  const Phase* other = nullptr;
  if (model.aligns_phases(view)) other = counterpart(*model.against(view), phase);
  if (!other) return std::string(phase.name);
  return fmt::format("{}: A {}, B {}", phase.name, time_text(phase), time_text(*other));
}

}  // namespace

void draw_phases(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                 const ViewState& view) {
  const Box& row = places.phases;
  if (row.height() <= 0) return;
  float drawn_to = row.x0;  // of many steps those are drawn that reach a further pixel
  for (const Phase& phase : model.shown(view)->phases()) {
    const float x0 = std::max(row.x0, places.time.to_pixel(phase.range.begin));
    const float x1 = std::min(row.x1, places.time.to_pixel(phase.range.end));
    if (x1 <= x0 || x1 < drawn_to) continue;
    drawn_to = x1 + 1;
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
  const Opened& shown = *model.shown(view);
  const double step = length_of_step(shown, phase.step);
  std::vector<std::string> lines{
      name_of(phase, shown),
      fmt::format("{}, {:.0f} % of the step", time_text(phase), 100 * phase.range.span() / step)};
  const std::vector<const Opened*> overlaid = model.overlaid(view);
  for (std::size_t i = 0; i < overlaid.size(); ++i)
    if (const Phase* other = counterpart(*overlaid[i], phase))
      lines.push_back(fmt::format("{}: {}, {:.2f} times as long", recording_letter(i + 1),
                                  time_text(*other), other->range.span() / phase.range.span()));
  return lines;
}

}  // namespace tidemark::gui
