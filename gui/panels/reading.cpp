// The line above the curve: how much of what is alive, under the mouse or at the cursor.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {
namespace {

// "mesa, predicted"; with all of the title where the model is another one.
std::string title_beside(const Opened& other, const Opened& shown) {
  if (other.trace().model != shown.trace().model) return other.name;
  return fmt::format("{}, {}", other.recording.strategy,
                     sources[static_cast<std::size_t>(other.recording.source)].name);
}

// Where the mouse is, or else the cursor. Nothing after the step's end, which the axis goes beyond
// if what is compared takes longer: memory that is no more is not 1.6 GiB.
std::optional<StateId> state_at_reading(const TimelinePlaces& places, const Opened& opened,
                                        const ViewState& view, StateId at_cursor) {
  const double moment = view.hover.value_or(view.cursor_time);
  if (places.map_of(opened).to_own(moment) > opened.end()) return {};
  if (view.hover) return state_under(places, opened, places.time.to_pixel(*view.hover));
  return at_cursor;
}

}  // namespace

Color outline_color(std::size_t i) {
  return mixed(theme::bright, theme::faint, std::min(1.0, 0.6 * static_cast<double>(i)));
}

std::vector<KeyEntry> reading_of(const TimelinePlaces& places, const ViewModel& model,
                                 const ViewState& view) {
  const Opened& opened = *model.shown(view);
  const auto state = state_at_reading(places, opened, view, view.cursor);
  const auto amount_of = [&](Category category) -> std::string {
    if (view.curve.hidden[static_cast<std::size_t>(category)]) return "hidden";
    if (!state) return "-";
    return to_text(opened.memory().categories_of(*state)[static_cast<std::size_t>(category)]);
  };
  // Where there is width to spare, each has room for the widest amount: numbers change in place.
  const float widest =
      places.time.x1 - places.time.x0 > 40 * places.em ? text_width(" 1000 MiB") : 0;
  const auto entry = [&](std::string_view name, std::string_view amount, Color color) {
    return KeyEntry{fmt::format("{} {}", name, amount), color,
                    widest > 0 ? text_width(name) + widest : 0};
  };
  std::vector<KeyEntry> entries;
  for (const auto& [category, color] : category_colors)
    if (opened.has(category))
      entries.push_back(entry(to_string(category), amount_of(category), color));
  const std::vector<const Opened*> overlaid = model.overlaid(view);
  for (std::size_t i = 0; i < overlaid.size(); ++i) {
    const double own_time = places.map_of(*overlaid[i]).to_own(view.cursor_time);
    const auto then =
        state_at_reading(places, *overlaid[i], view, overlaid[i]->memory().at(own_time));
    entries.push_back(
        entry(fmt::format("{}: {},", recording_letter(i + 1), title_beside(*overlaid[i], opened)),
              then ? to_text(overlaid[i]->memory().total_of(*then)) : "-", outline_color(i)));
  }
  const std::size_t drawn = 1 + overlaid.size(), open = model.recordings().size();
  if (!overlaid.empty() && open > drawn)
    entries.push_back({fmt::format("{} more open, not drawn", open - drawn)});
  if (places.ranks_without_room > 0)
    entries.push_back(
        {fmt::format("{} more classes of ranks: see Ranks", places.ranks_without_room)});
  return entries;
}

std::string live_text(const Opened& opened, std::optional<StateId> state) {
  if (!has_memory(opened.recording)) return "no memory";
  return state ? to_text(opened.memory().total_of(*state)) + " live" : "A has ended";
}

void draw_reading(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                  const ViewState& view) {
  const Box& box = places.reading;
  if (box.height() <= 0) return;
  list.AddRectFilled(box.min(), box.max(), ink(theme::panel));
  const float y = box.y0 + 0.2F * places.em;
  const Opened& opened = *model.shown(view);
  const auto state = state_at_reading(places, opened, view, view.cursor);
  draw_text(list, {places.all.x0 + 2, y, box.x0 - 6, y + places.em}, live_text(opened, state),
            theme::text, Align::Right);
  draw_keys(list, {box.x0 + 4, y, box.x1, box.y1}, reading_of(places, model, view), theme::text);
}

}  // namespace tidemark::gui
