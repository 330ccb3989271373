// A session: what is open in a window and how it is looked at, to go on another day.
#pragma once

#include "gui/model.h"

namespace tidemark::gui {

inline constexpr std::string_view session_ending = ".session.json";

/// A prediction that was kept beside others.
struct KeptInputs {
  std::string name;
  std::string command;

  bool operator==(const KeptInputs&) const = default;
};

/// What is selected, with the name that it had: another version may number things anew.
struct NamedSelection {
  std::string op = {}, block = {}, category = {};
  std::optional<std::size_t> run = {}, buffer = {};
  std::string name = {};  ///< of the run or buffer

  bool operator==(const NamedSelection&) const = default;
};

struct Session {
  std::string command = {};                ///< that predicts what is predicted; "" = nothing is
  std::optional<PlanChoice> planned = {};  ///< along the front, in place of its first strategy
  std::vector<KeptInputs> kept = {};
  std::vector<std::string> files = {};
  std::string shown = {}, against = {};     ///< names of recordings; "" = the first, none
  bool is_whole = true, is_at_peak = true;  ///< all of the time axis; the cursor
  NamedSelection selection = {};
  ViewState view = {};  ///< its choices, and the notes
};

Session session_of(const ViewModel& model, const ViewState& view);

/// Asks for its inputs and reads its files. What was open gives way; how it is looked at follows
/// when all is there. What of it is gone is told, and the rest opens.
void open_session(Session session, ViewModel& model, ViewState& view);
/// To be called each frame.
void go_on_opening(ViewModel& model, ViewState& view);

/// Paths in the file are relative to its folder where they are in it.
Session read_session(const std::string& path);
/// InputError if the file cannot be written; it is then as it was.
void write_session(const std::string& path, const ViewModel& model, ViewState& view);
/// Is there a file of that name that is not as this window read or wrote it?
bool is_foreign(const std::string& path, const ViewState& view);

/// Reads and opens the file, and keeps the session there from now on. InputError.
void open_session_file(const std::string& path, ViewModel& model, ViewState& view);

/// Keeps the session where it is kept; else, or where somebody else's file is, asks.
void save_session(const ViewModel& model, ViewState& view);

/// "gpt2 --batch 16, 2 files, 3 notes"
std::string describe(const Session& session);

/// For the next window to offer; a file that cannot be written is none.
void keep_last_session(const std::string& path, const ViewModel& model, const ViewState& view);

/// Of the window that was closed last, beside the settings; "" where those have no place.
std::string last_session_path(const std::string& settings);

}  // namespace tidemark::gui
