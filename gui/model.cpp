// Opens, replaces and closes recordings; carries selection and cursor over to the next one.
#include "gui/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tidemark::gui {
namespace {

// The same thing in another recording: ids differ, names stay.
OpId op_called(const Trace& trace, const std::string& name, OpId guess) {
  if (index(guess) < trace.ops.size() && trace[guess].name == name) return guess;
  const auto found = std::ranges::find(trace.ops, name, &Op::name);
  return found == trace.ops.end() ? no_op : static_cast<OpId>(found - trace.ops.begin());
}

double arena_of(const Opened& opened) {
  return std::max(1.0, static_cast<double>(opened.recording.planned.count));
}

// "name", "name (2)", "name (3)": two files may hold the same step.
void name_apart(const std::vector<OpenRecording>& others, std::string& name) {
  const std::string wanted = name;
  for (int i = 2; std::ranges::find(others, name, &OpenRecording::name) != others.end(); ++i)
    name = fmt::format("{} ({})", wanted, i);
}

// What showed all addresses still does; else they stay, as far as the new arena goes.
void follow_arena(const Opened& before, const Opened& now, ViewState& view) {
  const bool was_whole = view.addresses.span() >= arena_of(before);
  view.addresses =
      was_whole ? Range{0, arena_of(now)} : clamped(view.addresses, address_limits(now));
}

// A change of inputs keeps what can be kept: the share of the step that is visible, the selected
// op. Cursor, range and buffers belong to the old recording.
void carry_over(const Opened& before, const Opened& now, ViewState& view) {
  const double scale = now.end() / before.end();
  const bool was_at_peak = view.cursor == before.peak();
  const bool was_whole = view.visible == whole({view.end});  // then follow_axis() adapts it
  follow_arena(before, now, view);
  if (!was_whole) view.visible = {view.visible.begin * scale, view.visible.end * scale};
  view.range.reset();
  const OpId op = view.selection.op;
  view.selection = {};
  if (op != no_op) view.selection.op = op_called(now.trace(), before.trace()[op].name, op);
  put_cursor(now, was_at_peak ? now.peak() : now.memory().at(view.cursor_time * scale), view);
}

}  // namespace

std::string ViewModel::take_opened(ViewState& view) {
  std::string problem;
  while (auto done = loading_.next()) {
    if (!done->opened) {
      problem = std::move(done->problem);
      continue;
    }
    std::string name = done->opened->name;
    add({.opened = std::move(done->opened), .name = std::move(name), .path = done->path});
    const std::size_t last = recordings_.size() - 1;
    if (done->opening == Opening::Shown || last == 0) {
      show(last, view);
      view.against.reset();
    } else if (!view.against) {
      view.against = last;
    }
    if (done->opening == Opening::Shown) view.notice = "opened " + done->path;
  }
  return problem;
}

std::string ViewModel::start(const std::string& subject, ViewState& view) {
  try {
    if (is_check_file(subject)) {
      open_baseline(subject);
      view.wanted_tab = Tab::Baseline;
      return "";
    }
    auto inputs = inputs_of ? inputs_of(subject, what_if_ ? &*what_if_ : nullptr) : std::nullopt;
    if (!inputs) {
      open(subject, Opening::Shown);
      return "";
    }
    ++view.gesture;
    ask(std::move(*inputs), view);
    if (predicted_ > 0 && view.shown != 0) show(0, view);
    return problem_;
  } catch (const InputError& error) {
    return error.what();
  }
}

void ViewModel::add(Recording recording) {
  auto opened = std::make_shared<const Opened>(std::move(recording));
  std::string name = opened->name;
  add({std::move(opened), std::move(name)});
}

void ViewModel::add(OpenRecording recording) {
  name_apart(recordings_, recording.name);
  recordings_.push_back(std::move(recording));
}

void ViewModel::show(std::size_t recording, ViewState& view) const {
  view.shown = recording;
  show_all(*shown(view), view);
}

void ViewModel::close(std::size_t recording, ViewState& view) {
  if (!can_close(recording)) return;
  recordings_.erase(recordings_.begin() + static_cast<std::ptrdiff_t>(recording));
  if (view.against == recording) view.against.reset();
  if (view.against && *view.against > recording) --*view.against;
  if (view.shown == recording) {
    view.shown = 0;
    if (!is_empty()) show(0, view);
  } else if (view.shown > recording) {
    --view.shown;
  }
  if (view.against == view.shown) view.against.reset();
}

// A gesture that goes through many inputs, as a slider does, is taken back as one.
void ViewModel::remember(const ViewState& view) {
  if (!what_if_ || remembered_gesture_ == view.gesture) return;
  remembered_gesture_ = view.gesture;
  remember(*what_if_);
  if (predicted_ > 0) before_ = {recordings_[0].opened, *recordings_[0].report};
}

void ViewModel::remember(Before before) {
  constexpr std::size_t most = 1000;
  undone_to_.push_back(std::move(before));
  if (undone_to_.size() > most) undone_to_.erase(undone_to_.begin());
  redone_to_.clear();
}

// Puts back what there was, and returns what there is.
ViewModel::Before ViewModel::exchange(Before before, ViewState& view) {
  if (NoteList* notes = std::get_if<NoteList>(&before)) return std::exchange(view.notes, *notes);
  Before now = *what_if_;
  forget_before();
  predict_and_plan(std::get<WhatIf>(std::move(before)), view);
  return now;
}

void ViewModel::undo(ViewState& view) {
  if (undone_to_.empty()) return;
  Before earlier = std::move(undone_to_.back());
  undone_to_.pop_back();
  redone_to_.push_back(exchange(std::move(earlier), view));
}

void ViewModel::redo(ViewState& view) {
  if (redone_to_.empty()) return;
  Before later = std::move(redone_to_.back());
  redone_to_.pop_back();
  undone_to_.push_back(exchange(std::move(later), view));
}

void ViewModel::change_notes(NoteList notes, ViewState& view) {
  if (notes == view.notes) return;
  remember(std::exchange(view.notes, std::move(notes)));
  remembered_gesture_.reset();
}

void ViewModel::ask(WhatIf what_if, ViewState& view) {
  remember(view);
  predict_and_plan(std::move(what_if), view);
}

void ViewModel::predict_and_plan(WhatIf what_if, ViewState& view) {
  show_prediction(std::move(what_if), view);
  if (!what_if_->planned) return;
  // The plan of other inputs may say nothing about these. Until theirs is there, all is kept.
  if (!problem_.empty()) {
    WhatIf kept = *what_if_;
    kept.strategies.front() = parse_strategy(reference_strategy().name);
    show_prediction(std::move(kept), view);
  }
  if (problem_.empty()) planned_.ask({scenario_of(*what_if_), what_if_->planned->allowed});
}

void ViewModel::move_along_front(Bytes budget, ViewState& view) {
  const auto front = planned_.newest();
  if (!front || !what_if_ || !what_if_->planned) return;
  remember(view);
  WhatIf what_if = *what_if_;
  what_if.planned->budget = budget;
  what_if.strategies.front() = front->points[front->within(budget)].plan;
  show_prediction(std::move(what_if), view);
}

void ViewModel::follow_front(ViewState& view) {
  if (!what_if_ || !what_if_->planned || planned_.is_catching_up()) return;
  const auto front = planned_.newest();
  if (!front || front == followed_) return;
  followed_ = front;
  move_along_front(what_if_->planned->budget, view);
}

void ViewModel::show_prediction(WhatIf what_if, ViewState& view) {
  imagines_.clear();  // it was about the inputs before
  // A class of ranks that was chosen is gone in a shorter pipeline.
  StepOptions& step = what_if.scenario.step;
  if (step.rank && step.rank->stage >= step.mesh[tidemark::Axis::Pipeline]) step.rank.reset();
  what_if_ = std::move(what_if);
  problem_.clear();
  try {
    Scenario scenario = scenario_of(*what_if_);
    scenario.strategies = offered(*what_if_);
    // Before anything is replaced: inputs that make no step leave the picture as it is.
    std::vector<Prediction> made = predict(*what_if_);
    levers_.ask({std::move(scenario), what_if_->strategies.front()});
    for (const Prediction& prediction : made)
      if (!prediction.opened)
        problem_ = prediction.report.strategy + " does not apply: " + prediction.report.reason;
    if (!problem_.empty()) return;
    replace_predictions(std::move(made), view);
  } catch (const InputError& error) {
    problem_ = error.what();
  }
}

// Other recordings stand behind the predicted ones and keep their order.
void ViewModel::replace_predictions(std::vector<Prediction> made, ViewState& view) {
  const Shown before = is_empty() ? nullptr : shown(view);
  const std::size_t had = predicted_;
  // Where one of the others is then; a prediction that is no more gives way to the last one.
  const auto moved = [&](std::size_t i) {
    return i < had ? std::min(i, made.size() - 1) : i - had + made.size();
  };
  if (before) view.shown = moved(view.shown);
  if (view.against)
    view.against = *view.against < had && *view.against >= made.size()
                       ? std::nullopt
                       : std::optional(moved(*view.against));
  recordings_.erase(recordings_.begin(), recordings_.begin() + static_cast<std::ptrdiff_t>(had));
  predicted_ = made.size();
  for (Prediction& one : made)
    add({one.opened, one.opened->name, std::move(one.report), one.ranks});
  std::rotate(recordings_.begin(), recordings_.end() - static_cast<std::ptrdiff_t>(predicted_),
              recordings_.end());
  if (!before) return show_all(*shown(view), view);
  if (shown(view) != before) carry_over(*before, *shown(view), view);
}

void ViewModel::keep(ViewState& view) {
  if (!is_prediction(view.shown)) {
    view.notice = recordings_[view.shown].name + " stays as it is: only predictions change";
    return;
  }
  OpenRecording kept = recordings_[view.shown];
  const auto same = std::ranges::find(recordings_.begin() + static_cast<std::ptrdiff_t>(predicted_),
                                      recordings_.end(), kept.opened, &OpenRecording::opened);
  if (same != recordings_.end()) {
    view.against = static_cast<std::size_t>(same - recordings_.begin());
    view.notice = same->name + " is kept already";
    return;
  }
  kept.inputs = *what_if_;
  kept.inputs->strategies = {what_if_->strategies.at(view.shown)};
  if (view.shown != 0) kept.inputs->planned.reset();  // the plan is the first one's
  kept.name = fmt::format("kept {}, batch {}: {}", ++kept_, kept.opened->trace().step.batch,
                          kept.opened->name);
  add(std::move(kept));
  view.against = recordings_.size() - 1;
}

void ViewModel::add_kept(const WhatIf& inputs, std::string name) {
  Prediction made = predict(inputs).front();
  if (!made.opened)
    throw InputError(made.report.strategy + " does not apply: " + made.report.reason);
  add({.opened = std::move(made.opened),
       .name = std::move(name),
       .report = std::move(made.report),
       .ranks = std::move(made.ranks),
       .inputs = inputs});
}

void ViewModel::imagine_levers(ViewState& view) {
  std::vector<std::string> names = view.marked;
  if (const std::string& hovered = view.hovered_lever;
      !hovered.empty() && std::ranges::find(names, hovered) == names.end())
    names.push_back(hovered);
  const auto table = levers_.newest();
  const auto pulled = table ? levers_named(*table, names) : std::vector<const TriedLever*>();
  std::string name;
  for (const TriedLever* lever : pulled) name += (name.empty() ? "" : ", ") + lever->name;
  if (name == imagines_) return;
  imagines_ = name;
  try {
    if (!name.empty()) imagined_.ask(gui::imagined(*what_if_, *table, pulled));
  } catch (const InputError& error) {
    imagines_.clear();
    view.notice = error.what();
  }
}

void ViewModel::pull(const std::string& lever, ViewState& view) {
  const auto table = levers_.newest();
  if (!table || !what_if_) return;
  const bool is_marked = std::ranges::find(view.marked, lever) != view.marked.end();
  const std::vector<std::string> names = is_marked ? view.marked : std::vector{lever};
  try {
    ask(with(*what_if_, levers_named(*table, names)), view);
    view.marked.clear();
  } catch (const InputError& error) {
    view.notice = error.what();
  }
}

std::shared_ptr<const Prediction> ViewModel::imagined() const {
  if (imagines_.empty() || imagined_.is_catching_up()) return nullptr;
  const auto made = imagined_.newest();
  return made && made->opened ? made : nullptr;
}

const Opened* ViewModel::against(const ViewState& view) const {
  return view.against && *view.against < recordings_.size()
             ? recordings_[*view.against].opened.get()
             : nullptr;
}

std::vector<const Opened*> ViewModel::overlaid(const ViewState& view) const {
  constexpr std::size_t most = 4;  // more curves than this cannot be told apart
  std::vector<const Opened*> others;
  if (const Opened* first = against(view)) others.push_back(first);
  for (std::size_t i = 0; i < recordings_.size() && !others.empty() && others.size() < most; ++i) {
    const Opened* other = recordings_[i].opened.get();
    if (other != shown(view).get() && std::ranges::find(others, other) == others.end())
      others.push_back(other);
  }
  return others;
}

void ViewModel::follow_axis(ViewState& view) const {
  double end = shown(view)->end();
  if (!aligns_phases(view))
    for (const Opened* other : overlaid(view)) end = std::max(end, other->end());
  const bool was_whole = view.visible == whole({view.end});
  view.end = end;
  view.visible = was_whole ? whole({end}) : clamped(view.visible, {end});
}

// Predictions stand first, in the order of their strategies.
std::optional<Predicted> ViewModel::predicted_one_of(const ViewState& view) const {
  const std::size_t one = std::min(view.shown, *view.against),
                    other = std::max(view.shown, *view.against);
  if (!causes_of || !is_prediction(one) || recordings_[other].path.empty()) return {};
  // Inputs that make no step, as half of a word is, leave the predictions as they were.
  if (!problem_.empty() || one >= what_if_->strategies.size()) return {};
  return Predicted{scenario_of(*what_if_), what_if_->strategies.at(one), recordings_[other].path,
                   causes_of};
}

const NewestDiff& ViewModel::newest_diff(const ViewState& view) {
  newest_diff_.look(shown(view), recordings_[*view.against].opened, predicted_one_of(view));
  return newest_diff_;
}

void ViewModel::wait() const {
  if (what_if_) levers_.wait(), planned_.wait(), imagined_.wait();
  newest_diff_.wait();
  curves_.wait(), range_.wait();
  if (baselines_) baselines_->wait();
  loading_.wait();
}

void ViewModel::open_baseline(const std::string& path) {
  if (!baselines_) baselines_ = std::make_unique<Baselines>();
  baseline_path_ = path;
  baselines_->ask(path);
}

std::shared_ptr<const CheckedBaseline> ViewModel::baseline() const {
  return baselines_ && !baselines_->is_catching_up() ? baselines_->newest() : nullptr;
}

void ViewModel::open_experiment(const regression::Experiment& experiment, ViewState& view) {
  try {
    WhatIf inputs = gui::inputs_of(baseline_path_, experiment);
    ++view.gesture;
    ask(std::move(inputs), view);
    if (predicted_ > 0 && view.shown != 0) show(0, view);
    view.notice = problem_.empty() ? "opened " + experiment.id : problem_;
  } catch (const InputError& error) {
    view.notice = error.what();
  }
}

const Report* ViewModel::report_of(std::size_t recording) const {
  if (recording >= recordings_.size()) return nullptr;
  const auto& report = recordings_[recording].report;
  return report ? &*report : nullptr;
}

const Ranks* ViewModel::ranks_of(std::size_t recording) const {
  return recording < recordings_.size() ? recordings_[recording].ranks.get() : nullptr;
}

void ViewModel::show_rank(std::optional<RankClass> rank, ViewState& view) {
  if (!what_if_ || what_if_->scenario.step.rank == rank) return;
  WhatIf changed = *what_if_;
  changed.scenario.step.rank = rank;
  ask(std::move(changed), view);
}

Theme theme_of(const ViewState& view) {
  if (view.theme == ThemeChoice::Auto) return view.desktop_theme;
  return view.theme == ThemeChoice::Light ? Theme::Light : Theme::Dark;
}

void show_all(const Opened& opened, ViewState& view) {
  view.end = opened.end();
  view.visible = whole({view.end});
  view.addresses = {0, arena_of(opened)};
  view.selection = {};
  view.range.reset();
  view.bytes.reset();
  put_cursor(opened, opened.peak(), view);
}

Limits address_limits(const Opened& opened) {
  constexpr double page = 4096;
  return {arena_of(opened), page};
}

void fit(ViewState& view) {
  view.visible = whole({view.end});
  view.bytes.reset();
}

void put_cursor(const Opened& opened, StateId state, ViewState& view) {
  view.cursor = state;
  view.cursor_time = static_cast<double>(opened.memory().begin_of(state).count());
}

void show_note(const Opened& opened, const Note& note, ViewState& view) {
  const double moment = moment_in(opened, note);
  put_cursor(opened, opened.memory().at(moment), view);
  view.cursor_time = moment;
  if (view.visible.contains(moment)) return;
  const double half = view.visible.span() / 2;
  view.visible = clamped({moment - half, moment + half}, {view.end});
}

void select_run(const Opened& opened, RunId run, ViewState& view) {
  view.selection = {.run = run, .op = opened.op_of(run)};
}

void select_buffer(const Opened& opened, BufferId buffer, ViewState& view) {
  view.selection = {.buffer = buffer, .op = opened.home_of(buffer)};
}

void select_op(OpId op, ViewState& view) { view.selection = {.op = op}; }

bool belongs_to(const Opened& opened, BufferId buffer, const Selection& selection) {
  if (selection.buffer) return *selection.buffer == buffer;
  if (selection.op != no_op) return opened.home_of(buffer) == selection.op;
  if (selection.category) return opened.schedule()[buffer].category == *selection.category;
  return selection.block >= 0 && opened.block_of(buffer) == selection.block;
}

void reveal(const Opened& opened, ViewState& view) {
  std::optional<RunId> run = view.selection.run;
  if (!run && view.selection.buffer) run = opened.buffers().first_writer(*view.selection.buffer);
  if (!run && view.selection.op != no_op)
    if (const auto runs = opened.runs_of(view.selection.op); !runs.empty()) run = RunId{runs[0]};
  if (!run) return;
  const auto begin = static_cast<double>(opened[*run].begin.count());
  const auto end = static_cast<double>(opened[*run].end.count());
  // A run is readable from a few hundredths of the width on; then context matters more.
  const double wanted = 40 * std::max(1.0, end - begin);
  const double span = std::min(view.visible.span(), wanted);
  const double centre = (begin + end) / 2;
  const bool is_visible = begin >= view.visible.begin && end <= view.visible.end;
  if (is_visible && view.visible.span() <= wanted) return;
  view.visible = clamped({centre - span / 2, centre + span / 2}, {view.end});
}

}  // namespace tidemark::gui
