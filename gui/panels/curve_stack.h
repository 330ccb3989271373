// The stack under the memory curve: bands of categories, modules or tensors.
#pragma once

#include "gui/panels/curve_labels.h"

namespace tidemark::gui {

/// Calls visit(x0, x1, state) for neighbouring columns that show the same state.
template <typename Visit>
void visit_columns(const TimelinePlaces& places, const Opened& opened, Visit visit) {
  const float first = std::max(places.time.x0, std::floor(places.x_of(opened, 0)));
  const float last = std::min(places.time.x1, std::ceil(places.x_of(opened, opened.end())));
  float begin = first;
  std::optional<StateId> pending;
  for (float x = first; x < last; ++x) {
    const StateId state = state_under(places, opened, x);
    // Zoomed in, one state fills many columns: one box for all of them.
    if (pending == state) continue;
    if (pending) visit(begin, x, *pending);
    pending = state;
    begin = x;
  }
  if (pending) visit(begin, last, *pending);
}

/// Categories have their colors, tensors those of their category in two shades, modules a ramp from
/// the first to the last.
Color color_of(const Bands& bands, std::size_t band);

/// A box for as many columns as a band stays where it is, so that a thousand tensors are some
/// thousand boxes.
void draw_stack(ImDrawList& list, const TimelinePlaces& places, const Bands& bands,
                const Heights& height, ViewState& view);

/// The band under the mouse: an index into `bands.all()`.
std::optional<std::size_t> band_under(const TimelinePlaces& places, const Bands& bands,
                                      const Heights& height, ImVec2 mouse);

/// "blocks.3", "812 MiB, 9 % of 8.97 GiB at 12.3 ms", "activation"
std::vector<std::string> lines_of(const Bands& bands, std::size_t band, StateId state);

}  // namespace tidemark::gui
