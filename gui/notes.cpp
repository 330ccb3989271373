// Finds notes by moment and writes them as a table.
#include "gui/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidemark::gui {
namespace {

// What the first stream runs then, "" between runs.
std::string run_text(const Opened& opened, double moment) {
  for (std::size_t s = 0; s < opened.lanes().size(); ++s)
    if (const auto run = opened.run_at(s, moment)) return opened.describe(*run);
  return "";
}

// A bar would end the column, a new line the row.
std::string in_a_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

}  // namespace

double moment_in(const Opened& opened, const Note& note) {
  return opened.end() == note.step ? note.moment : note.moment / note.step * opened.end();
}

std::vector<std::size_t> notes_about(const NoteList& notes, const std::string& file) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < notes.size(); ++i)
    if (notes[i].file == file) found.push_back(i);
  std::ranges::stable_sort(found, {},
                           [&](std::size_t i) { return notes[i].moment / notes[i].step; });
  return found;
}

std::optional<std::size_t> next_note(const NoteList& notes, const std::string& file,
                                     const Opened& opened, double moment, bool forward) {
  std::vector<std::size_t> order = notes_about(notes, file);
  if (order.empty()) return {};
  if (!forward) std::ranges::reverse(order);
  const auto next = std::ranges::find_if(order, [&](std::size_t i) {
    const double at = moment_in(opened, notes[i]);
    return forward ? at > moment : at < moment;
  });
  return next == order.end() ? order.front() : *next;
}

std::string title_of(const Note& note) { return note.text.empty() ? "bookmark" : note.text; }

std::string notes_as_markdown(const NoteList& notes, const std::string& file,
                              const Opened& opened) {
  std::string text = fmt::format("# Notes on {}\n\n", opened.name);
  text += "| time | live | runs | note |\n|---:|---:|---|---|\n";
  for (const std::size_t i : notes_about(notes, file)) {
    const double moment = moment_in(opened, notes[i]);
    const StateId state = opened.memory().at(moment);
    text += fmt::format("| {} | {} | {} | {} |\n",
                        to_text(Nanoseconds{static_cast<std::int64_t>(std::round(moment))}),
                        to_text(opened.memory().total_of(state)),
                        in_a_cell(run_text(opened, moment)), in_a_cell(title_of(notes[i])));
  }
  return text;
}

}  // namespace tidemark::gui
