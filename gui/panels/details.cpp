// What is selected, in words: a run, a tensor, an op, or a range.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/facts.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// Operands of a run that are listed; more are counted.
constexpr std::size_t most_listed = 12;

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

// One category of the peak: its share as a bar behind its name. A click marks it everywhere.
void list_category(Category category, Bytes bytes, Bytes all, ViewState& view) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const double share = static_cast<double>(bytes.count) / static_cast<double>(all.count);
  const std::string name(to_string(category));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(at, {at.x + width * static_cast<float>(share), at.y + 1.1F * em},
                     ink(color_of(category), 110), 2);
  const bool is_chosen = view.selection.category == category;
  if (ImGui::Selectable(("##" + name).c_str(), is_chosen))
    view.selection = is_chosen ? Selection{} : Selection{.category = category};
  draw_key(list, {at.x + 4, at.y}, name, color_of(category), theme::text);
  draw_text(list, {at.x, at.y, at.x + width - 4, at.y + em},
            fmt::format("{}   {}", to_text(bytes),
                        share < 0.005 ? "<1 %" : fmt::format("{:.0f} %", 100 * share)),
            theme::text, Align::Right);
}

// What makes the peak: the question that the window is opened for.
void describe_peak(const Opened& opened, ViewState& view) {
  const Bytes all = opened.memory().total_of(opened.peak());
  if (all.count <= 0) return;
  const auto maker = opened.maker_of_peak();
  const std::string where = fmt::format(
      "Peak of {} at {}{}", to_text(all), to_text(opened.memory().begin_of(opened.peak())),
      maker ? ", for the " + opened.describe(*maker) : std::string());
  text_wrapped(where, theme::bright);
  const BytesByCategory bytes = opened.memory().categories_of(opened.peak());
  std::vector<Category> largest_first;
  for (std::size_t c = 0; c < category_count; ++c)
    if (bytes[c].count > 0) largest_first.push_back(static_cast<Category>(c));
  std::ranges::stable_sort(largest_first, std::ranges::greater{},
                           [&](Category c) { return bytes[static_cast<std::size_t>(c)]; });
  for (const Category category : largest_first)
    list_category(category, bytes[static_cast<std::size_t>(category)], all, view);
  ImGui::Spacing();
}

void describe_recording(const ViewModel& model, const Opened& opened, ViewState& view) {
  const Recording& recording = opened.recording;
  const Report* report = model.report_of(view.shown);
  // First, because it says how far the rest can be believed.
  if (report && !report->caution.empty()) {
    text_wrapped(report->caution, theme::alarm);
    view.facts.caution = ImGui::GetItemRectMax().y;
    ImGui::Spacing();
  }
  describe_peak(opened, view);
  std::vector<Fact> facts{{"", model.recordings()[view.shown].name}};
  if (!report) facts.push_back({"step", to_text(recording.timeline.duration)});
  facts.push_back({"arena", recording.planned.count > 0 ? to_text(recording.planned) : "unknown"});
  facts.push_back({opened.has_budget() ? "budget" : "capacity",
                   recording.capacity.count > 0 ? to_text(recording.capacity) : "unknown"});
  facts.push_back({"overlap", to_text(recording.timeline.overlap)});
  facts.push_back({"idle", to_text(recording.timeline.idle)});
  facts.push_back({"work", count_text(recording.timeline.runs.size(), "run")});
  if (report) std::ranges::copy(facts_of(*report), std::back_inserter(facts));
  list_facts(facts);
}

// What of a block is alive at the cursor.
void describe_block(ViewModel& model, const Opened& opened, std::int32_t block) {
  const LiveSet& live = model.live().current();
  if (model.live().owner() != &opened) return text_line("counting ...", theme::faint);
  std::vector<Fact> facts{{"", opened.block_name(block)}};
  Bytes sum;
  for (const LiveBlock& part : live.blocks) {
    const LiveShare& first = live.shares[part.first];
    if (first.block != block) continue;
    facts.push_back({std::string(to_string(first.category)),
                     fmt::format("{} in {}", to_text(part.bytes), part.buffers)});
    sum += part.bytes;
  }
  facts.push_back({"alive", fmt::format("{} at {}", to_text(sum),
                                        to_text(opened.memory().begin_of(live.state)))});
  list_facts(facts);
}

}  // namespace

void draw_details(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Selection selection = view.selection;
  if (view.range) {
    draw_range_details(model, view);
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
    text_wrapped(opened.trace()[selection.op].name, theme::bright);
  } else if (selection.block >= 0) {
    describe_block(model, opened, selection.block);
  } else if (!view.range) {
    describe_recording(model, opened, view);
  }
  if (selection.op != no_op) list_runs(opened, selection.op, view);
}

}  // namespace tidemark::gui
