// What happens in the range, under its statistics: what came and went, and the work by kind.
#include <fmt/format.h>

#include "gui/drawing/widgets.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

std::string change_of(Bytes change) {
  return change.count == 0 ? "-" : change_text(Bytes{}, change);
}

void draw_rows(const RangeTable& table) {
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable("kinds", 4, flags)) return;
  ImGui::TableSetupColumn("kind", ImGuiTableColumnFlags_WidthStretch, 1.6F);
  ImGui::TableSetupColumn("runs", ImGuiTableColumnFlags_WidthStretch, 0.7F);
  ImGui::TableSetupColumn("busy", ImGuiTableColumnFlags_WidthStretch, 1.1F);
  ImGui::TableSetupColumn("live", ImGuiTableColumnFlags_WidthStretch, 1.2F);
  ImGui::TableHeadersRow();
  for (const RangeRow& row : table.rows) {
    ImGui::TableNextRow();
    text_cell(row.kind);
    if (ImGui::IsItemHovered() && (row.allocated.count > 0 || row.freed.count > 0))
      ImGui::SetTooltip("of its tensors %s allocated, %s freed", to_text(row.allocated).c_str(),
                        to_text(row.freed).c_str());
    number_cell(row.runs == 0 ? "-" : grouped(row.runs));
    number_cell(row.runs == 0 ? "-" : to_text(row.busy));
    number_cell(change_of(row.change()));
  }
  ImGui::EndTable();
}

void list_tensors(const Opened& opened, const RangeTable& table, ViewState& view) {
  if (table.tensors.empty()) return;
  ImGui::Spacing();
  text_line("came and stays (+), went (−)", theme::faint);
  for (const RangeTensor& one : table.tensors) {
    const Bytes size = opened.schedule()[one.buffer].size;
    const std::string text = fmt::format(
        "{}  {}##{}", one.appears ? change_text(Bytes{}, size) : change_text(size, Bytes{}),
        opened.describe(one.buffer), index(one.buffer));
    if (ImGui::Selectable(text.c_str(), view.selection.buffer == one.buffer))
      select_buffer(opened, one.buffer, view);
  }
  if (table.others > 0) text_line(fmt::format("and {} more", grouped(table.others)), theme::faint);
}

}  // namespace

void draw_range_details(ViewModel& model, ViewState& view) {
  const ViewModel::Shown& opened = model.shown(view);
  list_facts(lines_of(facts_of(*opened, *view.range)));
  const RangeTable* table = model.range().look(opened, *view.range);
  if (!table) return text_line("counting ...", theme::faint);
  list_facts(lines_of(*table));
  ImGui::Spacing();
  draw_rows(*table);
  list_tensors(*opened, *table, view);
  view.facts.range_rows = table->rows.size();
}

}  // namespace tidemark::gui
