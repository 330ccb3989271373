// What there is to look at: opened recordings, what-if inputs and their answers. No window, no
// Dear ImGui.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "gui/baseline.h"
#include "gui/curves.h"
#include "gui/indexes/live_set.h"
#include "gui/indexes/search.h"
#include "gui/levers.h"
#include "gui/loading.h"
#include "gui/navigation.h"
#include "gui/newest_diff.h"
#include "gui/range_table.h"
#include "gui/view_state.h"
#include "gui/what_if.h"

namespace tidemark::gui {

/// A recording among those that are open.
struct OpenRecording {
  std::shared_ptr<const Opened> opened;
  std::string name;                         ///< no other has it
  std::optional<Report> report = {};        ///< of what was predicted here
  std::shared_ptr<const Ranks> ranks = {};  ///< of a pipeline that was predicted here
  std::string path = {};                    ///< of a file
  std::optional<WhatIf> inputs = {};        ///< of what was kept, with its one strategy
};

class ViewModel {
 public:
  using Shown = std::shared_ptr<const Opened>;

  ViewModel() = default;
  /// Files are read by `reader`.
  explicit ViewModel(Loading::Reader reader) : loading_(std::move(reader)) {}

  /// Reads the file beside the drawing.
  void open(const std::string& path, Opening opening) { loading_.add(path, opening); }
  /// Shows files that have been read since. Returns what is wrong with one that cannot be, or "".
  std::string take_opened(ViewState& view);
  void add(Recording recording);
  void show(std::size_t recording, ViewState& view) const;
  /// Those of files and what was kept can be closed; predictions stay as long as there are inputs.
  bool can_close(std::size_t recording) const { return recording >= predicted_; }
  void close(std::size_t recording, ViewState& view);

  /// Predicts these inputs from now on. Its recordings come before those of files. What was asked
  /// before can be asked again: one step back for each gesture.
  void ask(WhatIf what_if, ViewState& view);
  void undo(ViewState& view);
  void redo(ViewState& view);
  /// A step of the same history.
  void change_notes(NoteList notes, ViewState& view);
  bool can_undo() const { return !undone_to_.empty(); }
  bool can_redo() const { return !redone_to_.empty(); }
  /// What was shown before the last gesture changed it, until the next one; null after that.
  const Shown& before() const { return before_.opened; }
  const Report* report_before() const { return before_.opened ? &before_.report : nullptr; }
  void forget_before() { before_ = {}; }

  /// The plan within this budget, along the newest front; nothing where none is known.
  void move_along_front(Bytes budget, ViewState& view);
  /// Shows the plan of a front that has come since.
  void follow_front(ViewState& view);
  /// Keeps the prediction that is shown as it is now, beside what further changes make of it.
  void keep(ViewState& view);
  /// As keep() made it once. Throws InputError for inputs that make no step.
  void add_kept(const WhatIf& inputs, std::string name);

  /// Predictions first.
  const std::vector<OpenRecording>& recordings() const { return recordings_; }
  bool is_empty() const { return recordings_.empty(); }
  const Shown& shown(const ViewState& view) const { return recordings_[view.shown].opened; }
  bool is_prediction(std::size_t recording) const { return recording < predicted_; }
  const Opened* against(const ViewState& view) const;
  /// All whose curves lie over what is shown: the one it is compared with, then the others that are
  /// open. Empty if it is compared with nothing.
  std::vector<const Opened*> overlaid(const ViewState& view) const;
  /// Are they drawn phase by phase on the axis of what is shown?
  bool aligns_phases(const ViewState& view) const {
    return view.aligns_phases && against(view) != nullptr;
  }
  /// Lets the time axis end where the last of them does. What showed everything still does.
  void follow_axis(ViewState& view) const;

  /// Between what is shown and what it is compared with.
  const NewestDiff& newest_diff(const ViewState& view);
  /// Until all that is computed beside the drawing is there.
  void wait() const;
  bool is_catching_up() const {
    return levers_.is_catching_up() || newest_diff_.is_catching_up() || planned_.is_catching_up() ||
           imagined_.is_catching_up() || curves_.is_catching_up() || range_.is_catching_up() ||
           (baselines_ && baselines_->is_catching_up());
  }
  const Loading& loading() const { return loading_; }

  const std::optional<WhatIf>& what_if() const { return what_if_; }
  /// Of what was predicted here, kept or not: its report. Null for files.
  const Report* report_of(std::size_t recording) const;
  /// Likewise the classes of ranks of its pipeline; null without one.
  const Ranks* ranks_of(std::size_t recording) const;
  /// Shows this class of ranks, or nothing: the tightest of them.
  void show_rank(std::optional<RankClass> rank, ViewState& view);
  /// Why the last change of inputs gave no answer, or "".
  const std::string& problem() const { return problem_; }
  Levers& levers() { return levers_; }
  Planned& planned() { return planned_; }

  /// Predicts what the lever under the mouse and those that are collected would do together.
  void imagine_levers(ViewState& view);
  /// Its name; "" where nothing is imagined.
  const std::string& imagines() const { return imagines_; }
  /// Null while nothing is imagined, and until it is known.
  std::shared_ptr<const Prediction> imagined() const;
  /// Changes the inputs by this lever, or by all that are collected if it is one of them.
  void pull(const std::string& lever, ViewState& view);

  /// Runs the experiments of a check file.
  void open_baseline(const std::string& path);
  /// Its name; "" where none is open.
  const std::string& baseline_path() const { return baseline_path_; }
  /// What they gave; null until that is known.
  std::shared_ptr<const CheckedBaseline> baseline() const;
  /// Predicts what the experiment asks.
  void open_experiment(const regression::Experiment& experiment, ViewState& view);

  LiveSetBuilder& live() { return live_; }
  Search& search() { return search_; }
  Curves& curves() { return curves_; }
  NewestRange& range() { return range_; }

  /// Inputs from a model's name, its config.json or a trace file, or from a plan file beside the
  /// inputs that there are; nothing for what holds a recording. Throws InputError. Set by who knows
  /// the command line.
  std::function<std::optional<WhatIf>(const std::string& subject, const WhatIf* now)> inputs_of;
  /// Opens what was dropped, or the model of this name. Returns what is wrong with it, or "".
  std::string start(const std::string& subject, ViewState& view);

  /// Why a file's run needs another amount than was predicted; set by who knows such files.
  CausesOf causes_of;

  /// How to type the inputs on a command line; set by who knows the command line.
  std::function<std::string(const WhatIf&)> command_of;
  /// The same for another day and folder: files by their whole path, the plan along a front left
  /// out. And the way back, which throws InputError.
  std::function<std::string(const WhatIf&)> lasting_command_of;
  std::function<WhatIf(const std::string& command)> inputs_typed;

 private:
  void add(OpenRecording recording);
  void predict_and_plan(WhatIf what_if, ViewState& view);
  void show_prediction(WhatIf what_if, ViewState& view);
  void remember(const ViewState& view);
  std::optional<Predicted> predicted_one_of(const ViewState& view) const;
  void replace_predictions(std::vector<Prediction> made, ViewState& view);

  std::vector<OpenRecording> recordings_;
  std::size_t predicted_ = 0;  ///< so many of them, the first
  std::size_t kept_ = 0;       ///< so many have ever been
  Loading loading_{[](const std::string& path, ReadProgress* progress) {
    return read_recording(path, progress);
  }};
  /// What there was before a step of the history changed it.
  using Before = std::variant<WhatIf, NoteList>;

  Before exchange(Before before, ViewState& view);
  void remember(Before before);

  std::optional<WhatIf> what_if_;
  std::vector<Before> undone_to_, redone_to_;  ///< the newest last
  /// Whose changes of inputs are one step; nothing after a step of another kind.
  std::optional<std::uint64_t> remembered_gesture_ = 0;
  Prediction before_;
  std::string problem_;
  Levers levers_;
  Imagined imagined_;
  std::string imagines_;  ///< the name of what is imagined; "" = nothing
  Planned planned_;
  std::shared_ptr<const PlannedFront> followed_;  ///< the front that what is shown is taken from
  std::string baseline_path_;
  std::unique_ptr<Baselines> baselines_;  ///< once a file is opened
  LiveSetBuilder live_;
  NewestDiff newest_diff_;
  Search search_;
  Curves curves_;
  NewestRange range_;
};

/// How far the map of addresses goes; it ends at a page of memory.
Limits address_limits(const Opened& opened);
/// Shows a recording as if it were opened now: all of it, the cursor at its peak.
void show_all(const Opened& opened, ViewState& view);
/// All of the time axis, and all of the bytes.
void fit(ViewState& view);
/// The cursor to this state.
void put_cursor(const Opened& opened, StateId state, ViewState& view);
/// The cursor to the note, in sight.
void show_note(const Opened& opened, const Note& note, ViewState& view);
/// What is selected, and all that belongs to it: the run's op, the buffer's producer.
void select_run(const Opened& opened, RunId run, ViewState& view);
void select_buffer(const Opened& opened, BufferId buffer, ViewState& view);
void select_op(OpId op, ViewState& view);
/// Is the buffer what is selected, or a part of it?
bool belongs_to(const Opened& opened, BufferId buffer, const Selection& selection);
/// Moves the visible range so that the selected run can be seen.
void reveal(const Opened& opened, ViewState& view);

}  // namespace tidemark::gui
