// From what a window holds to a session and back: ids become names, and paths lasting ones.
#include "gui/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "gui/export.h"
#include "gui/session_text.h"

namespace tidemark::gui {
namespace {

using namespace literals;

// A command line, a few dozen choices, and as many notes as hands can write.
constexpr FileKindRow session_file{FileKind::Settings, "a session", 8_MiB,
                                   "name what Ctrl + S wrote"};

NamedSelection named(const Opened& opened, const Selection& selection) {
  NamedSelection named;
  if (selection.op != no_op) named.op = opened.trace()[selection.op].name;
  if (selection.block >= 0) named.block = opened.block_name(selection.block);
  if (selection.category) named.category = to_string(*selection.category);
  if (selection.run)
    named.run = index(*selection.run), named.name = opened.describe(*selection.run);
  if (selection.buffer)
    named.buffer = index(*selection.buffer), named.name = opened.describe(*selection.buffer);
  return named;
}

template <typename Rows, typename Projection>
std::optional<std::size_t> place_of(const Rows& rows, const std::string& name,
                                    Projection projection) {
  const auto found = std::ranges::find(rows, name, projection);
  if (name.empty() || found == rows.end()) return {};
  return static_cast<std::size_t>(found - rows.begin());
}

// Nothing where it is called otherwise now.
Selection selection_of(const Opened& opened, const NamedSelection& named) {
  if (named.run && *named.run < opened.timeline().runs.size())
    if (const auto run = static_cast<RunId>(*named.run); opened.describe(run) == named.name)
      return {.run = run, .op = opened.op_of(run)};
  if (named.buffer && *named.buffer < opened.schedule().buffers.size())
    if (const auto buffer = static_cast<BufferId>(*named.buffer);
        opened.describe(buffer) == named.name)
      return {.buffer = buffer, .op = opened.home_of(buffer)};
  Selection selection;
  if (const auto op = place_of(opened.trace().ops, named.op, &Op::name))
    selection.op = static_cast<OpId>(*op);
  if (const auto block = place_of(opened.trace().blocks, named.block, &Block::name))
    selection.block = static_cast<std::int32_t>(*block);
  for (const auto& row : categories)
    if (row.name == named.category) selection.category = row.value;
  return selection;
}

// A plan along the front is no strategy that can be typed.
std::string command_without_plan(const ViewModel& model, WhatIf inputs) {
  if (inputs.planned) inputs.strategies.front() = parse_strategy(reference_strategy().name);
  inputs.planned.reset();
  return model.lasting_command_of(inputs);
}

void take_choices(const ViewState& from, ViewState& to) {
  to.color_by = from.color_by, to.curve = from.curve, to.theme = from.theme;
  to.tab = from.tab, to.wanted_tab = from.tab;
  to.measure = from.measure, to.lever_order = from.lever_order, to.marked = from.marked;
  to.groups_blocks = from.groups_blocks, to.open_groups = from.open_groups;
  to.live_filter = from.live_filter, to.lower_share = from.lower_share;
  to.shows_what_if = from.shows_what_if, to.aligns_phases = from.aligns_phases;
}

std::optional<std::size_t> recording_called(const ViewModel& model, const std::string& name) {
  return place_of(model.recordings(), name, &OpenRecording::name);
}

void look_as(const Session& session, const Opened& opened, ViewState& view) {
  if (!session.is_whole) view.visible = clamped(session.view.visible, {view.end});
  view.bytes = session.view.bytes;
  if (!session.is_at_peak) {
    put_cursor(opened, opened.memory().at(session.view.cursor_time), view);
    view.cursor_time = std::min(session.view.cursor_time, opened.end());
  }
  if (const auto& range = session.view.range; range && range->begin < opened.end())
    view.range = Range{std::max(0.0, range->begin), std::min(range->end, opened.end())};
  view.selection = selection_of(opened, session.selection);
}

std::string lasting(const std::string& file, const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(file).lexically_normal();
  const std::filesystem::path within = whole.lexically_relative(folder);
  return within.empty() || *within.begin() == ".." ? whole.string() : within.string();
}

std::filesystem::path folder_of(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().parent_path();
}

// Calls change(path) for each path that a session holds.
template <typename Change>
void change_paths(Session& session, Change change) {
  for (std::string& file : session.files) file = change(file);
  for (Note& note : session.view.notes)
    if (!note.file.empty()) note.file = change(note.file);
}

std::string text_for(const std::string& path, const ViewModel& model, const ViewState& view) {
  Session session = session_of(model, view);
  change_paths(session, [folder = folder_of(path)](const std::string& file) {
    return lasting(file, folder);
  });
  return write_session_text(session);
}

}  // namespace

Session session_of(const ViewModel& model, const ViewState& view) {
  Session session;
  session.view.notes = view.notes;
  take_choices(view, session.view);
  if (model.what_if() && model.lasting_command_of) {
    session.command = command_without_plan(model, *model.what_if());
    session.planned = model.what_if()->planned;
  }
  for (const OpenRecording& recording : model.recordings()) {
    if (!recording.path.empty()) session.files.push_back(recording.path);
    // A plan that was kept along a front is not: the front that it was on is gone.
    if (recording.inputs && !recording.inputs->planned && model.lasting_command_of)
      session.kept.push_back({recording.name, model.lasting_command_of(*recording.inputs)});
  }
  if (model.is_empty()) return session;
  const Opened& opened = *model.shown(view);
  session.shown = model.recordings()[view.shown].name;
  if (model.against(view)) session.against = model.recordings()[*view.against].name;
  session.is_whole = view.visible == whole({view.end});
  session.view.visible = view.visible, session.view.bytes = view.bytes;
  session.is_at_peak = view.cursor == opened.peak();
  session.view.cursor_time = view.cursor_time, session.view.range = view.range;
  session.selection = named(opened, view.selection);
  return session;
}

void open_session(Session session, ViewModel& model, ViewState& view) {
  // What hands wrote before can be undone to.
  if (model.is_empty() && view.notes.empty()) view.notes = session.view.notes;
  model.change_notes(session.view.notes, view);
  for (std::size_t i = model.recordings().size(); i-- > 0;)
    if (model.can_close(i)) model.close(i, view);
  view.against.reset();
  std::string problem;
  const auto attempt = [&](auto action) {
    try {
      action();
    } catch (const InputError& error) {
      problem = error.what();
    }
  };
  attempt([&] {
    if (session.command.empty()) return;
    if (!model.inputs_typed) throw InputError("a session with a model is opened by tidemark view");
    WhatIf inputs = model.inputs_typed(session.command);
    inputs.planned = session.planned;
    ++view.gesture;
    model.ask(std::move(inputs), view);
    if (!model.problem().empty()) throw InputError(model.problem());
  });
  for (const KeptInputs& kept : session.kept)
    attempt([&] {
      if (model.inputs_typed) model.add_kept(model.inputs_typed(kept.command), kept.name);
    });
  for (const std::string& file : session.files) model.open(file, Opening::Compared);
  take_choices(session.view, view);
  view.notice = problem;
  view.opening = std::make_shared<const Session>(std::move(session));
}

// The front of plans is made anew, too: until it is there, times are those of another step.
void go_on_opening(ViewModel& model, ViewState& view) {
  if (!view.opening || model.loading().is_busy() || model.planned().is_catching_up()) return;
  const std::shared_ptr<const Session> session = std::exchange(view.opening, nullptr);
  if (model.is_empty()) return;
  const auto shown = session->shown.empty() ? std::optional<std::size_t>(0)
                                            : recording_called(model, session->shown);
  if (shown) {
    model.show(*shown, view);
    view.against = recording_called(model, session->against);
    model.follow_axis(view);
    look_as(*session, *model.shown(view), view);
  } else if (view.notice.empty()) {
    view.notice = session->shown + " is not there any more";
  }
}

Session read_session(const std::string& path) {
  Session session = read_session_text(read_file(path, session_file), path);
  change_paths(session, [folder = folder_of(path)](const std::string& file) {
    return (folder / file).lexically_normal().string();
  });
  return session;
}

void write_session(const std::string& path, const ViewModel& model, ViewState& view) {
  std::string text = text_for(path, model, view);
  write_file(path, text);
  view.session_path = path, view.session_text = std::move(text);
}

bool is_foreign(const std::string& path, const ViewState& view) {
  if (!std::filesystem::exists(path)) return false;
  if (path != view.session_path) return true;
  try {
    return read_file(path, session_file) != view.session_text;
  } catch (const InputError&) {  // whatever it is, it is not what was written
    return true;
  }
}

void open_session_file(const std::string& path, ViewModel& model, ViewState& view) {
  std::string text = read_file(path, session_file);
  open_session(read_session(path), model, view);
  view.session_path = path, view.session_text = std::move(text);
}

void save_session(const ViewModel& model, ViewState& view) {
  const std::string path = view.session_path.empty() ? file_stem(model.shown(view)->recording) +
                                                           std::string(session_ending)
                                                     : view.session_path;
  const bool is_refused = !view.session_path.empty() && is_foreign(path, view);
  if (!view.session_path.empty() && !is_refused) {
    view.wants_session = path;
    return;
  }
  view.saving = SaveDialog{path, is_refused};
  view.focuses_saving = true;
}

void keep_last_session(const std::string& path, const ViewModel& model, const ViewState& view) {
  if (path.empty() || (model.is_empty() && view.notes.empty())) return;
  try {
    // One of a newer version, or what is no session at all, is left alone.
    if (std::filesystem::exists(path)) read_session(path);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_file(path, text_for(path, model, view));
  } catch (const std::exception&) {  // a read-only home is no reason to end badly
  }
}

std::string describe(const Session& session) {
  std::string text = session.command.empty() ? "" : session.command;
  constexpr std::string_view prefix = "tidemark view ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  const auto add = [&](std::size_t count, std::string_view noun) {
    if (count == 0) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, noun, count == 1 ? "" : "s");
  };
  add(session.files.size(), "file");
  add(session.kept.size(), "kept one");
  add(session.view.notes.size(), "note");
  return text;
}

std::string last_session_path(const std::string& settings) {
  if (settings.empty()) return "";
  return (std::filesystem::path(settings).parent_path() / "last.session.json").string();
}

}  // namespace tidemark::gui
