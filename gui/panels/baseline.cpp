// The experiments of a check file: what each was expected to give, what it gives, and which moved.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

using regression::ExperimentVerdict;
using regression::MetricVerdict;

bool has_moved(const ExperimentVerdict& verdict) {
  return verdict.failed() || std::ranges::any_of(verdict.metrics, [](const MetricVerdict& metric) {
           return metric.expected && metric.now && metric.expected != metric.now;
         });
}

// What fails, then what moved within its tolerance, then the rest; each in the order of the file.
int rank_of(const ExperimentVerdict& verdict) {
  return verdict.failed() ? 0 : has_moved(verdict) ? 1 : 2;
}

std::vector<std::size_t> moved_first(const regression::CheckReport& report) {
  std::vector<std::size_t> order(report.experiments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return rank_of(report.experiments[i]); });
  return order;
}

std::string amount_of(const ExperimentVerdict& verdict, regression::Metric metric, bool is_now) {
  const auto found = std::ranges::find(verdict.metrics, metric, &MetricVerdict::metric);
  if (found == verdict.metrics.end()) return "-";
  const auto& value = is_now ? found->now : found->expected;
  if (!value) return "-";
  return metric == regression::Metric::Step ? to_text(Nanoseconds{*value}) : to_text(Bytes{*value});
}

void describe_findings(const ExperimentVerdict& verdict) {
  ImGui::BeginTooltip();
  for (const auto& finding : verdict.findings) text_line(finding.text, theme::alarm);
  for (const std::string& cause : {verdict.cause, verdict.time_cause})
    if (!cause.empty()) text_line(cause);
  for (const std::string& note : verdict.notes) text_line(note, theme::faint);
  text_line("a click opens it", theme::faint);
  ImGui::EndTooltip();
}

// True if it is to be opened.
bool draw_experiment(const ExperimentVerdict& verdict, ViewState& view) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (view.facts.experiments++ == 0) view.facts.first_experiment = ImGui::GetCursorScreenPos().y;
  const bool is_clicked =
      ImGui::Selectable(("##" + verdict.id).c_str(), false, ImGuiSelectableFlags_SpanAllColumns);
  if (ImGui::IsItemHovered()) describe_findings(verdict);
  ImGui::SameLine(0, 0);
  fitted_line(verdict.id);
  for (const bool is_now : {false, true})
    number_cell(amount_of(verdict, regression::Metric::Allocated, is_now), theme::faint);
  for (const bool is_now : {false, true})
    number_cell(amount_of(verdict, regression::Metric::Step, is_now), theme::faint);
  text_cell(moved_text(verdict), verdict.failed()     ? theme::alarm
                                 : has_moved(verdict) ? theme::text
                                                      : theme::faint);
  return is_clicked;
}

void draw_summary(const CheckedBaseline& baseline) {
  const regression::CheckReport& report = baseline.report;
  const auto moved = std::ranges::count_if(report.experiments, has_moved);
  fitted_line(
      fmt::format("{}: {}, {} moved, {} outside of tolerance", baseline.file->path,
                  count_text(report.experiments.size(), "experiment"), moved, report.failures()),
      theme::faint);
  for (const auto& finding : report.findings) text_wrapped(finding.text, theme::alarm);
}

}  // namespace

void draw_baseline(ViewModel& model, ViewState& view) {
  const std::shared_ptr<const CheckedBaseline> baseline = model.baseline();
  if (!baseline)
    return text_line(fmt::format("{}: running its experiments ...", model.baseline_path()),
                     theme::faint);
  if (!baseline->problem.empty()) return text_wrapped(baseline->problem, theme::alarm);
  draw_summary(*baseline);
  const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable("experiments", 6, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("experiment", ImGuiTableColumnFlags_WidthStretch, 2);
  for (const char* name : {"allocated, was", "now"})
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, 7 * em);
  for (const char* name : {"step, was", "is"})
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, 5 * em);
  ImGui::TableSetupColumn("moved", ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableHeadersRow();
  const ExperimentVerdict* opened = nullptr;
  for (const std::size_t i : moved_first(baseline->report))
    if (draw_experiment(baseline->report.experiments[i], view))
      opened = &baseline->report.experiments[i];
  ImGui::EndTable();
  if (!opened) return;
  if (const auto* experiment = experiment_of(*baseline, *opened))
    model.open_experiment(*experiment, view);
  else
    view.notice = opened->id + " is not in the file any more";
}

}  // namespace tidemark::gui
