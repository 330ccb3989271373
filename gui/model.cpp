#include "gui/model.h"

#include <algorithm>

#include "gui/navigation.h"

namespace tidemark {
namespace {

// The same thing in another recording: ids differ, names stay.
OpId op_called(const Trace& trace, const std::string& name, OpId guess) {
  if (index(guess) < trace.ops.size() && trace[guess].name == name) return guess;
  const auto found = std::ranges::find(trace.ops, name, &Op::name);
  return found == trace.ops.end() ? no_op : static_cast<OpId>(found - trace.ops.begin());
}

// A change of inputs keeps what can be kept: the share of the step that is visible, the selected
// op. Cursor, range and buffers belong to the old recording.
void carry_over(const Opened& before, const Opened& now, ViewState& view) {
  const double scale = now.end() / before.end();
  const bool was_at_peak = view.cursor == before.peak();
  const bool was_whole = view.visible == whole({view.end});  // then follow_axis() adapts it
  if (!was_whole) view.visible = {view.visible.begin * scale, view.visible.end * scale};
  view.range.reset();
  const OpId op = view.selection.op;
  view.selection = {};
  if (op != no_op) view.selection.op = op_called(now.trace(), before.trace()[op].name, op);
  put_cursor(now, was_at_peak ? now.peak() : now.memory().at(view.cursor_time * scale), view);
}

}  // namespace

void ViewModel::open(const std::string& path, ViewState& view) {
  try {
    add(read_recording(path));
    view.shown = recordings_.size() - 1;
    view.against.reset();
    show_all(*recordings_.back(), view);
    view.notice = "opened " + path;
  } catch (const InputError& error) {
    view.notice = error.what();
  }
}

void ViewModel::add(Recording recording) {
  recordings_.push_back(std::make_shared<const Opened>(std::move(recording)));
}

void ViewModel::add(Shown opened) { recordings_.push_back(std::move(opened)); }

void ViewModel::ask(WhatIf what_if, ViewState& view) {
  what_if_ = std::move(what_if);
  problem_.clear();
  Question question = what_if_->question;
  question.strategies = default_strategies();
  try {
    for (const std::string& text : what_if_->strategies) {
      const bool is_known = std::ranges::any_of(
          question.strategies, [&](const StrategySpec& known) { return known.text == text; });
      if (!is_known) question.strategies.push_back(parse_strategy(text));
    }
    // Before anything is replaced: inputs that make no step leave the picture as it is.
    std::vector<Prediction> made = predict(*what_if_);
    frontier_.ask(std::move(question));
    for (const Prediction& prediction : made)
      if (!prediction.opened)
        problem_ = prediction.report.strategy + " does not apply: " + prediction.report.reason;
    if (!problem_.empty()) return;
    const Shown before = is_empty() ? nullptr : shown(view);
    recordings_.erase(recordings_.begin(),
                      recordings_.begin() + static_cast<std::ptrdiff_t>(reports_.size()));
    // Recordings of files stand behind the predicted ones; what is shown keeps its place among
    // them.
    const auto shift = static_cast<std::ptrdiff_t>(made.size() - reports_.size());
    if (before && view.shown >= reports_.size()) view.shown += static_cast<std::size_t>(shift);
    reports_.clear();
    for (std::size_t i = 0; i < made.size(); ++i) {
      recordings_.insert(recordings_.begin() + static_cast<std::ptrdiff_t>(i), made[i].opened);
      reports_.push_back(made[i].report);
    }
    view.shown = std::min(view.shown, recordings_.size() - 1);
    if (view.against && *view.against >= recordings_.size()) view.against.reset();
    if (!before) return show_all(*shown(view), view);
    if (shown(view) != before) carry_over(*before, *shown(view), view);
  } catch (const InputError& error) {
    problem_ = error.what();
  }
}

void ViewModel::keep(ViewState& view) {
  recordings_.push_back(recordings_[view.shown]);
  view.against = recordings_.size() - 1;
}

const Opened* ViewModel::against(const ViewState& view) const {
  return view.against && *view.against < recordings_.size() ? recordings_[*view.against].get()
                                                            : nullptr;
}

std::vector<const Opened*> ViewModel::overlaid(const ViewState& view) const {
  constexpr std::size_t most = 4;  // more curves than this cannot be told apart
  std::vector<const Opened*> others;
  if (const Opened* first = against(view)) others.push_back(first);
  for (std::size_t i = 0; i < recordings_.size() && !others.empty() && others.size() < most; ++i) {
    const Opened* other = recordings_[i].get();
    if (other != shown(view).get() && std::ranges::find(others, other) == others.end())
      others.push_back(other);
  }
  return others;
}

void ViewModel::follow_axis(ViewState& view) const {
  double end = shown(view)->end();
  for (const Opened* other : overlaid(view)) end = std::max(end, other->end());
  const bool was_whole = view.visible == whole({view.end});
  view.end = end;
  view.visible = was_whole ? whole({end}) : clamped(view.visible, {end});
}

const Differences& ViewModel::differences(const ViewState& view) {
  differences_.look(recordings_[view.shown], recordings_[*view.against]);
  return differences_;
}

void ViewModel::wait() const {
  if (what_if_) frontier_.wait();
  differences_.wait();
}

const Report* ViewModel::report_of(std::size_t recording) const {
  return recording < reports_.size() ? &reports_[recording] : nullptr;
}

void show_all(const Opened& opened, ViewState& view) {
  view.end = opened.end();
  view.visible = whole({view.end});
  view.addresses = {0, std::max(1.0, static_cast<double>(opened.recording.planned.count))};
  view.selection = {};
  view.range.reset();
  put_cursor(opened, opened.peak(), view);
}

void put_cursor(const Opened& opened, StateId state, ViewState& view) {
  view.cursor = state;
  view.cursor_time = static_cast<double>(opened.memory().begin_of(state).count());
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

}  // namespace tidemark
