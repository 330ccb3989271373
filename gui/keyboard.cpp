// The list of keys for the help, and what each key does to the model and the view.
#include "gui/keyboard.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "gui/input.h"
#include "gui/navigation.h"
#include "gui/session.h"

namespace tidemark::gui {
namespace {

constexpr std::array help = {
    KeyHelp{"wheel", "zoom at the mouse; with Ctrl in small steps"},
    KeyHelp{"Shift + wheel, right drag", "move"},
    KeyHelp{"wheel on the axis of bytes", "zoom that axis; with Shift move along it"},
    KeyHelp{"left drag", "range: what happens in it is in the details; its edges can be moved"},
    KeyHelp{"Shift + click", "range from the cursor to here"},
    KeyHelp{"middle drag", "zoom to the range"},
    KeyHelp{"click on a run", "select its op, with arrows to who frees what it writes"},
    KeyHelp{"click on the curve", "put the cursor: its live set is listed below"},
    KeyHelp{"W  S", "zoom in, zoom out"},
    KeyHelp{"A  D", "move left, right"},
    KeyHelp{"F", "fit: show the whole step, and all of the bytes"},
    KeyHelp{"P", "cursor to the peak"},
    KeyHelp{".  ,", "next, previous run on the stream"},
    KeyHelp{"R", "selection to range"},
    KeyHelp{"Z", "zoom to the range"},
    KeyHelp{"C", "color by kind or by task"},
    KeyHelp{"M", "stack the curve by category, module or tensor"},
    KeyHelp{"X", "leave out what is persistent, or show it again"},
    KeyHelp{"H", "hide the selected category; without one, show all again"},
    KeyHelp{"K", "keep the recording to compare with"},
    KeyHelp{"L", "lay what is compared over it phase by phase, or moment by moment"},
    KeyHelp{"N", "write a note at the mouse, or at the cursor"},
    KeyHelp{"B", "bookmark there, or take the bookmark away"},
    KeyHelp{"J  Shift + J", "cursor to the next, previous note"},
    KeyHelp{"T", "light or dark"},
    KeyHelp{"Ctrl + S", "save the session"},
    KeyHelp{"Ctrl + Z", "take back the last change of an input or a note"},
    KeyHelp{"Ctrl + Y", "make it again; also Ctrl + Shift + Z"},
    KeyHelp{"/", "search ops and tensors"},
    KeyHelp{"?", "this help"},
    KeyHelp{"Ctrl + W", "close the recording that is shown"},
    KeyHelp{"Ctrl + Q", "close the window"},
    KeyHelp{"Esc", "close, or clear range and selection"}};

// Shares of what is visible per second: half a width is easily followed by the eye.
constexpr double speed = 1.5;

void move(ViewState& view) {
  const Limits limits{view.end};
  const double step = speed * static_cast<double>(ImGui::GetIO().DeltaTime);
  // Zooms where the eye is: at the mouse, or else in the middle.
  const double place = view.hover.value_or((view.visible.begin + view.visible.end) / 2);
  if (is_down(Key::W)) view.visible = zoomed(view.visible, place, std::exp(-step), limits);
  if (is_down(Key::S)) view.visible = zoomed(view.visible, place, std::exp(step), limits);
  if (is_down(Key::A)) view.visible = panned(view.visible, -step, limits);
  if (is_down(Key::D)) view.visible = panned(view.visible, step, limits);
}

// To the neighbour on the stream of the selected run, or to the run at the cursor.
void step_to_neighbour(const Opened& opened, ViewState& view, bool forward) {
  if (!view.selection.run) {
    for (std::size_t s = 0; s < opened.lanes().size(); ++s) {
      const TrackIndex& lane = opened.lanes()[s];
      const std::size_t next = lane.first_after(view.cursor_time);
      if (next == lane.size()) continue;
      select_run(opened, RunId{lane.item_of(next)}, view);
      return reveal(opened, view);
    }
    return;
  }
  const TimedRun& run = opened[*view.selection.run];
  const TrackIndex& lane = opened.lanes()[index(run.stream)];
  const std::size_t here = opened.position_of(*view.selection.run);
  if (forward ? here + 1 == lane.size() : here == 0) return;
  select_run(opened, RunId{lane.item_of(forward ? here + 1 : here - 1)}, view);
  reveal(opened, view);
}

void selection_to_range(const Opened& opened, ViewState& view) {
  if (view.selection.run) {
    const TimedRun& run = opened[*view.selection.run];
    view.range =
        Range{static_cast<double>(run.begin.count()), static_cast<double>(run.end.count())};
  } else if (view.selection.buffer) {
    const BufferId id = *view.selection.buffer;
    const StateId last = opened.buffers().last_state(id);
    if (opened.buffers().first_state(id) >= opened.memory().states()) return;  // never alive
    view.range = Range{
        static_cast<double>(opened.memory().begin_of(opened.buffers().first_state(id)).count()),
        last < opened.memory().states()
            ? static_cast<double>(opened.memory().begin_of(last).count())
            : opened.end()};
  }
  // Runs of no length make none.
  if (view.range && view.range->span() <= 0) view.range.reset();
}

// The selected category, or else all that was hidden is shown again.
void hide_or_show(ViewState& view) {
  if (!view.selection.category) {
    view.curve.hidden.reset();
    return;
  }
  view.curve.hidden.flip(static_cast<std::size_t>(*view.selection.category));
  view.selection = {};
}

void toggle_theme(ViewState& view) {
  view.theme = theme_of(view) == Theme::Light ? ThemeChoice::Dark : ThemeChoice::Light;
}

void use_curve_keys(ViewState& view) {
  CurveChoice& curve = view.curve;
  if (was_typed('m'))
    curve.by = static_cast<CurveBy>((static_cast<std::size_t>(curve.by) + 1) % curve_names.size());
  if (was_typed('x')) curve.hides_persistent = !curve.hides_persistent;
  if (was_typed('h')) hide_or_show(view);
}

// Where hands point, as far as the step goes.
double pointed_at(const Opened& opened, const ViewState& view) {
  return std::clamp(view.hover.value_or(view.cursor_time), 0.0, opened.end());
}

Note note_here(const ViewModel& model, const ViewState& view) {
  const Opened& opened = *model.shown(view);
  return {.moment = pointed_at(opened, view),
          .step = std::max(1.0, opened.end()),  // nothing may have been recorded
          .file = model.recordings()[view.shown].path};
}

// A second one within reach of the first takes that away, unless it says something.
void toggle_bookmark(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Note here = note_here(model, view);
  constexpr double reach = 0.005;  // of what is visible: some pixels
  NoteList notes = view.notes;
  const auto near = std::ranges::find_if(notes, [&](const Note& note) {
    return note.file == here.file && note.text.empty() &&
           std::abs(moment_in(opened, note) - here.moment) <= reach * view.visible.span();
  });
  near == notes.end() ? notes.push_back(here) : (void)notes.erase(near);
  model.change_notes(std::move(notes), view);
}

void go_to_note(const ViewModel& model, ViewState& view, bool forward) {
  const Opened& opened = *model.shown(view);
  const auto next =
      next_note(view.notes, model.recordings()[view.shown].path, opened, view.cursor_time, forward);
  if (next) show_note(opened, view.notes[*next], view);
}

void use_note_keys(ViewModel& model, ViewState& view) {
  if (was_typed('n')) {
    view.edited_note = EditedNote{{}, note_here(model, view)};
    view.focuses_note = true;
  }
  if (was_typed('b')) toggle_bookmark(model, view);
  if (was_typed('j')) go_to_note(model, view, !ImGui::GetIO().KeyShift);
}

void close_shown(const ViewModel& model, ViewState& view) {
  if (model.can_close(view.shown)) {
    view.closes = view.shown;
  } else {
    view.notice =
        "a prediction stays as long as its inputs do; files and what is kept can be closed";
  }
}

void escape(ViewState& view) {
  // A list that is open closes itself, and a number that is typed is given up.
  if (ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)) return;
  if (ImGui::GetIO().WantTextInput && !view.shows_search && !view.saving && !view.edited_note)
    return;
  // One thing at a time, the topmost first.
  if (view.saving || view.edited_note) {
    view.saving.reset(), view.edited_note.reset();
  } else if (view.shows_help || view.shows_search) {
    view.shows_help = view.shows_search = false;
  } else if (view.range) {
    view.range.reset();
  } else {
    view.selection = {};
  }
}

}  // namespace

namespace {

void use_control_keys(ViewModel& model, ViewState& view) {
  if (was_pressed(Key::W)) close_shown(model, view);
  if (was_pressed(Key::S)) save_session(model, view);
  const bool is_again = was_pressed(Key::Y) || (ImGui::GetIO().KeyShift && was_pressed(Key::Z));
  if (is_again) return model.redo(view);
  if (was_pressed(Key::Z)) model.undo(view);
}

}  // namespace

std::span<const KeyHelp> key_help() { return help; }

void use_keyboard(ViewModel& model, ViewState& view) {
  if (ImGui::GetIO().KeyCtrl && was_pressed(Key::Q)) view.wants_to_close = true;
  if (was_pressed(Key::Escape)) escape(view);
  // A letter that is typed into a field is no command.
  if (ImGui::GetIO().WantTextInput) return;
  if (was_typed('?')) view.shows_help = !view.shows_help;
  if (was_typed('t')) toggle_theme(view);
  if (model.is_empty()) return;
  const Opened& opened = *model.shown(view);
  if (ImGui::GetIO().KeyCtrl) return use_control_keys(model, view);
  move(view);
  use_curve_keys(view);
  use_note_keys(model, view);
  if (was_typed('f')) fit(view);
  if (was_typed('p')) put_cursor(opened, opened.peak(), view);
  if (was_typed('c'))
    view.color_by = view.color_by == ColorBy::Kind ? ColorBy::Task : ColorBy::Kind;
  if (was_typed('k')) model.keep(view);
  if (was_typed('l') && model.against(view)) view.aligns_phases = !view.aligns_phases;
  if (repeats('.')) step_to_neighbour(opened, view, true);
  if (repeats(',')) step_to_neighbour(opened, view, false);
  if (was_typed('r')) selection_to_range(opened, view);
  if (was_typed('z') && view.range)
    view.visible = around(view.range->begin, view.range->end, {view.end});
  if (was_typed('/')) view.shows_search = view.focuses_search = true;
}

}  // namespace tidemark::gui
