// The classes of ranks of a pipeline, the tightest first, and the picture of their passes.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

RankClass class_of_stage(std::size_t stage) { return {static_cast<std::int64_t>(stage)}; }

std::string waits_text(const Report& report) {
  return fmt::format("{:.1f} %", 100 * static_cast<double>(report.bubble.count()) /
                                     static_cast<double>(report.step.count()));
}

void draw_rank(std::size_t stage, const Ranks& ranks, ViewModel& model, ViewState& view) {
  const Report& report = ranks.reports[stage];
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (view.facts.ranks++ == 0) view.facts.first_rank = ImGui::GetCursorScreenPos().y;
  const std::string name = to_text(class_of_stage(stage));
  if (ImGui::Selectable(name.c_str(), stage == ranks.shown, ImGuiSelectableFlags_SpanAllColumns))
    model.show_rank(class_of_stage(stage), view);
  number_cell(to_text(report.allocated_peak));
  number_cell(to_text(report.reserved_peak));
  number_cell(report.fits ? "yes" : "no", report.fits ? theme::text : theme::alarm);
  number_cell(waits_text(report));
}

void draw_table(const Ranks& ranks, ViewModel& model, ViewState& view) {
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable("ranks", 5, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* name : {"ranks", "allocated", "reserved", "fits", "waits"})
    ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (const std::size_t stage : tightest_first(ranks)) draw_rank(stage, ranks, model, view);
  ImGui::EndTable();
}

Task task_of(StageWork work) {
  if (work == StageWork::Forward) return Task::Forward;
  return work == StageWork::Backward ? Task::Backward : Task::WeightGradient;
}

// Passes of a stage from left to right; those that pixels cannot tell apart are one box.
void draw_passes(ImDrawList& list, const Box& row, const Axis& time,
                 const std::vector<PipelinePass>& passes, ViewState& view) {
  constexpr float narrowest_pass = 2;  // pixels
  const float em = ImGui::GetFontSize();
  for (std::size_t i = 0; i < passes.size();) {
    const PipelinePass& pass = passes[i];
    const float x0 = time.to_pixel(static_cast<double>(pass.begin.count()));
    float x1 = time.to_pixel(static_cast<double>(pass.end.count()));
    for (++i; i < passes.size() && x1 - x0 < narrowest_pass; ++i)
      x1 = time.to_pixel(static_cast<double>(passes[i].end.count()));
    const Color color = color_of(task_of(pass.action.work));
    list.AddRectFilled({x0, row.y0}, {std::max(x0 + 1, x1 - 1), row.y1}, ink(color));
    ++view.facts.passes;
    if (x1 - x0 > 1.6F * em && row.height() >= em)
      draw_text(list, {x0, row.y0, x1, row.y1}, fmt::format("{}", pass.action.micro_batch),
                text_color_on(color), Align::Center);
  }
}

// A row per stage, which a click shows.
void draw_pipeline(const Ranks& ranks, ViewModel& model, ViewState& view) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const auto stages = static_cast<float>(ranks.pipeline.passes.size());
  const float step = std::clamp(room.y / stages, 2.0F, 1.7F * em);
  const float left = at.x + 3.2F * em, right = at.x + std::max(room.x, 6 * em);
  const Axis time{{0, static_cast<double>(ranks.pipeline.end.count())}, left, right};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ImGui::InvisibleButton("pipeline", {right - at.x, step * stages});
  const bool is_clicked = ImGui::IsItemClicked();
  for (std::size_t s = 0; s < ranks.pipeline.passes.size(); ++s) {
    const float y = at.y + static_cast<float>(s) * step;
    const Box row{left, y, right, y + step - (step > 4 ? 2 : 0)};
    list.AddRectFilled(row.min(), row.max(), ink(theme::plot));
    draw_passes(list, row, time, ranks.pipeline.passes[s], view);
    if (s == ranks.shown) list.AddRect(row.min(), row.max(), ink(theme::accent), 2, 0, 1.5F);
    if (step >= em)
      draw_text(list, {at.x, row.y0, left - 6, row.y1}, to_text(class_of_stage(s)),
                s == ranks.shown ? theme::bright : theme::faint, Align::Right);
  }
  if (!is_clicked) return;
  const float row = std::clamp((ImGui::GetIO().MousePos.y - at.y) / step, 0.0F, stages - 1);
  model.show_rank(class_of_stage(static_cast<std::size_t>(row)), view);
}

void draw_rank_summary(const Ranks& ranks, ViewModel& model, ViewState& view) {
  bool is_tightest = !model.what_if()->scenario.step.rank;
  if (ImGui::Checkbox("show the tightest", &is_tightest))
    model.show_rank(is_tightest ? std::nullopt : std::optional(class_of_stage(ranks.shown)), view);
  ImGui::SameLine();
  const Report& tightest = ranks.reports[ranks.tightest];
  fitted_line(fmt::format("{} needs most: {} reserved of {}; a step takes {}",
                          to_text(class_of_stage(ranks.tightest)), to_text(tightest.reserved_peak),
                          to_text(tightest.capacity), to_text(tightest.step)),
              theme::faint);
}

}  // namespace

void draw_ranks(ViewModel& model, ViewState& view) {
  // What is drawn stays as it is, whatever a click makes of the model.
  const std::shared_ptr<const Ranks> ranks = model.recordings()[view.shown].ranks;
  if (!ranks || !model.what_if()) return text_line("one rank alone", theme::faint);
  draw_rank_summary(*ranks, model, view);
  const float em = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
  const bool is_wide = width > 50 * em;
  ImGui::BeginChild("classes", {is_wide ? 24 * em : 0, is_wide ? 0 : 7 * em});
  draw_table(*ranks, model, view);
  ImGui::EndChild();
  if (is_wide) ImGui::SameLine();
  ImGui::BeginChild("picture");
  draw_pipeline(*ranks, model, view);
  ImGui::EndChild();
}

}  // namespace tidemark::gui
