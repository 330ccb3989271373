// What is selected, in words: a run, a tensor, an op, or a range.
#include <fmt/format.h>

#include <algorithm>

#include "gui/facts.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"

namespace tidemark {
namespace {

// Operands of a run that are listed; more are counted.
constexpr std::size_t most_listed = 12;

void list_facts(const std::vector<Fact>& facts) {
  ImGui::PushTextWrapPos(0);
  for (const Fact& fact : facts) {
    if (fact.name.empty()) {
      text_line(fact.value, theme::bright);
      continue;
    }
    text_line(fact.name, theme::faint);
    ImGui::SameLine(8.2F * ImGui::GetFontSize());
    text_line(fact.value);
  }
  ImGui::PopTextWrapPos();
}

void list_buffers(const Opened& opened, std::string_view title, std::span<const BufferId> buffers,
                  ViewState& view) {
  if (buffers.empty()) return;
  ImGui::Spacing();
  text_line(title, theme::faint);
  ImGui::PushID(title.data(), title.data() + title.size());
  for (std::size_t i = 0; i < std::min(buffers.size(), most_listed); ++i) {
    const BufferId id = buffers[i];
    const std::string text =
        fmt::format("{}  {}##{}", to_text(opened.schedule()[id].size), opened.describe(id), i);
    if (ImGui::Selectable(text.c_str())) select_buffer(opened, id, view);
  }
  ImGui::PopID();
  if (buffers.size() > most_listed)
    text_line(fmt::format("and {} more", buffers.size() - most_listed), theme::faint);
}

void list_runs(const Opened& opened, OpId op, ViewState& view) {
  const auto runs = opened.runs_of(op);
  if (runs.empty()) return;
  ImGui::Spacing();
  text_line("runs", theme::faint);
  for (std::size_t i = 0; i < std::min(runs.size(), most_listed); ++i) {
    const RunId run{runs[i]};
    const Run* of_step = opened.run_of(run);
    const std::string text =
        fmt::format("{}  {} at {}##{}", of_step ? to_string(of_step->task) : "copy",
                    to_text(opened[run].end - opened[run].begin),
                    tick_text(static_cast<double>(opened[run].begin.count()), 1000), i);
    if (ImGui::Selectable(text.c_str(), view.selection.run == run)) {
      select_run(opened, run, view);
      reveal(opened, view);
      return;
    }
  }
  if (runs.size() > most_listed)
    text_line(fmt::format("and {} more", runs.size() - most_listed), theme::faint);
}

void describe_recording(const ViewModel& model, const Opened& opened, const ViewState& view) {
  const Recording& recording = opened.recording;
  const StateId peak = opened.peak();
  std::vector<Fact> facts{{"", opened.name}};
  facts.push_back({"step", to_text(recording.timeline.duration)});
  facts.push_back({"live peak", fmt::format("{} at {}", to_text(opened.memory().total_of(peak)),
                                            to_text(opened.memory().begin_of(peak)))});
  facts.push_back({"arena", recording.planned.count > 0 ? to_text(recording.planned) : "unknown"});
  facts.push_back(
      {"capacity", recording.capacity.count > 0 ? to_text(recording.capacity) : "unknown"});
  facts.push_back({"overlap", to_text(recording.timeline.overlap)});
  facts.push_back({"idle", to_text(recording.timeline.idle)});
  facts.push_back({"runs", fmt::format("{}", recording.timeline.runs.size())});
  if (const Report* report = model.report_of(view.shown)) {
    facts.push_back({"allocated", fmt::format("{} at most (caching allocator)",
                                              to_text(report->allocated_peak))});
    facts.push_back({"fits", report->fits ? "yes" : "no, short by " + to_text(report->short_by)});
    facts.push_back({"samples/s", fmt::format("{:.1f}", report->samples_per_second)});
    if (!report->caution.empty()) facts.push_back({"caution", report->caution});
  }
  list_facts(facts);
}

}  // namespace

void draw_details(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Selection selection = view.selection;
  if (view.range) {
    list_facts(lines_of(facts_of(opened, *view.range)));
    ImGui::Separator();
  }
  if (selection.run) {
    const Step& step = opened.schedule().steps[opened[*selection.run].step];
    list_facts(facts_of(opened, *selection.run));
    list_buffers(opened, "writes", writes_of(opened.schedule(), step), view);
    list_buffers(opened, "reads", reads_of(opened.schedule(), step), view);
  } else if (selection.buffer) {
    list_facts(facts_of(opened, *selection.buffer,
                        Nanoseconds{static_cast<std::int64_t>(view.cursor_time)}));
  } else if (selection.op != no_op) {
    text_line(opened.trace()[selection.op].name, theme::bright);
  } else if (!view.range) {
    describe_recording(model, opened, view);
  }
  if (selection.op != no_op) list_runs(opened, selection.op, view);
}

}  // namespace tidemark
