// Notes and bookmarks at moments of a step: what somebody saw there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/opened.h"

namespace tidemark::gui {

struct Note {
  double moment = 0;      ///< ns, in a step …
  double step = 1;        ///< … that takes so long
  std::string text = {};  ///< "" = a bookmark
  std::string file = {};  ///< whose recording it is about; "" = predictions

  bool operator==(const Note&) const = default;
};

using NoteList = std::vector<Note>;

/// Where it is now: other inputs make the step longer, and the note keeps its share of it.
double moment_in(const Opened& opened, const Note& note);

/// Those about a recording of this file ("" = a prediction): indices, by moment.
std::vector<std::size_t> notes_about(const NoteList& notes, const std::string& file);

/// The next one after a moment, or before it; from the last goes to the first.
std::optional<std::size_t> next_note(const NoteList& notes, const std::string& file,
                                     const Opened& opened, double moment, bool forward);

/// Its text, or "bookmark".
std::string title_of(const Note& note);

/// A table in Markdown: when, live bytes, what runs, and the text.
std::string notes_as_markdown(const NoteList& notes, const std::string& file, const Opened& opened);

}  // namespace tidemark::gui
