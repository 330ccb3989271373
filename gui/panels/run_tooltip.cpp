// What a run is, computes and moves; for a folded cell, what is in it.
#include <fmt/format.h>

#include <algorithm>

#include "gui/facts.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {

namespace {

void draw_lines_of_run(const Hovered& hovered) {
  const Opened& opened = *hovered.lane->opened;
  if (hovered.cell.is_folded()) {
    const TrackIndex& track = opened.lanes()[hovered.lane->stream];
    const std::int64_t begin = track.begin_of(hovered.cell.first);
    const std::int64_t end = track.end_of(hovered.cell.last - 1);
    text_line(fmt::format("{} runs folded into one cell", hovered.cell.count()), theme::bright);
    text_line(
        fmt::format("{} busy of {}; the longest:", to_text(Nanoseconds{track.covered(begin, end)}),
                    to_text(Nanoseconds{end - begin})),
        theme::faint);
  }
  bool is_first = true;
  for (const Fact& fact : facts_of(opened, *hovered.run)) {
    if (is_first) {
      text_line(fact.value, theme::bright);
    } else {
      text_line(fmt::format("{}: {}", fact.name, fact.value));
    }
    is_first = false;
  }
}

}  // namespace

void draw_run_tooltip(const Hovered& hovered, const Ranks* ranks) {
  ImGui::BeginTooltip();
  if (ranks && hovered.lane->stage) {
    text_line(line_of(*ranks, *hovered.lane->stage), theme::bright);
    text_line("a click shows it", theme::faint);
  }
  if (hovered.run) draw_lines_of_run(hovered);
  ImGui::EndTooltip();
}

}  // namespace tidemark::gui
