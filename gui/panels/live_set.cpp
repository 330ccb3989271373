// The table of what is alive at the cursor.
#include <fmt/format.h>

#include <algorithm>

#include "gui/live_rows.h"
#include "gui/panels/panels.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

// What was decided comes before where it is: the tensor's name says the latter already.
enum Column : int { Tensor, SizeColumn, CategoryColumn, NextUse, Decision, Age, Op, Block };

template <typename Key>
void sort_by(std::vector<LiveRow>& rows, bool descending, Key key) {
  if (descending) {
    std::ranges::stable_sort(rows, std::ranges::greater{}, key);
  } else {
    std::ranges::stable_sort(rows, {}, key);
  }
}

void sort(const Opened& opened, std::vector<LiveRow>& rows) {
  const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (!specs || specs->SpecsCount == 0) return;
  const bool down = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
  switch (specs->Specs[0].ColumnIndex) {
    case Tensor:
      return sort_by(rows, down, [](const LiveRow& row) { return row.name; });
    case CategoryColumn:
      return sort_by(rows, down,
                     [&](const LiveRow& row) { return opened.schedule()[row.id].category; });
    case Op:
      return sort_by(rows, down, [&](const LiveRow& row) { return opened.home_of(row.id); });
    case Block:
      return sort_by(rows, down, [&](const LiveRow& row) { return opened.block_of(row.id); });
    case Age:
      return sort_by(rows, !down, [](const LiveRow& row) { return row.born; });
    case NextUse:
      return sort_by(rows, down, [](const LiveRow& row) { return row.next_use; });
    case Decision:
      return sort_by(rows, down, [&](const LiveRow& row) { return opened.decision_of(row.id); });
    default:
      return sort_by(rows, down, [](const LiveRow& row) { return row.bytes; });
  }
}

void draw_category(Category category) {
  ImGui::TableNextColumn();
  const float em = ImGui::GetFontSize();
  draw_key(*ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), to_string(category),
           color_of(category), theme::text);
  ImGui::Dummy({8 * em, em});
}

// The name, with a sign that opens and closes a group; members stand further right.
void draw_name(const Opened& opened, const LiveRow& row, bool is_member, ViewState& view) {
  const bool is_open = view.open_groups.contains(row.name);
  if (ImGui::Selectable("##row", !row.is_group() && belongs_to(opened, row.id, view.selection),
                        ImGuiSelectableFlags_SpanAllColumns)) {
    if (!row.is_group()) {
      select_buffer(opened, row.id, view);
      reveal(opened, view);
    } else if (is_open) {
      view.open_groups.erase(row.name);
    } else {
      view.open_groups.insert(row.name);
    }
  }
  ImGui::SameLine(0, is_member ? 1.2F * ImGui::GetFontSize() : 0);
  const std::string text =
      row.is_group() ? fmt::format("{} {} ×{}", is_open ? "▼" : "▶", row.name, row.members.size())
                     : row.name;
  fitted_line(text, row.is_group() ? theme::bright : theme::text);
}

// The share of all that is alive, behind the size.
void draw_share(Bytes bytes, Bytes all) {
  ImGui::TableNextColumn();
  const float em = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const double share =
      static_cast<double>(bytes.count) / static_cast<double>(std::max<std::int64_t>(1, all.count));
  ImGui::GetWindowDrawList()->AddRectFilled(
      at, {at.x + width * static_cast<float>(share), at.y + 1.1F * em}, ink(theme::accent, 70), 2);
  const std::string text = to_text(bytes);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, width - text_width(text)));
  text_line(text);
}

void draw_row(const Opened& opened, const LiveRow& row, Bytes all, bool is_member,
              ViewState& view) {
  const Buffer& buffer = opened.schedule()[row.id];
  const auto now = Nanoseconds{static_cast<std::int64_t>(view.cursor_time)};
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(static_cast<int>(index(row.id)));
  ImGui::PushID(row.is_group());
  draw_name(opened, row, is_member, view);
  ImGui::PopID();
  ImGui::PopID();
  draw_share(row.bytes, all);
  draw_category(buffer.category);
  number_cell(row.next_use == LiveRow::never ? "none" : "in " + to_text(row.next_use - now));
  text_cell(opened.why_alive(row.id),
            opened.decision_of(row.id).empty() ? theme::faint : theme::text);
  number_cell(buffer.persistent ? "whole step" : to_text(now - row.born));
  const OpId op = opened.home_of(row.id);
  text_cell(op == no_op || row.is_group() ? std::string_view("-")
                                          : std::string_view(opened.trace()[op].name),
            theme::faint);
  text_cell(row.is_group() ? "-" : opened.block_name(opened.block_of(row.id)), theme::faint);
}

struct LiveLine {
  LiveRow row;
  bool is_member = false;
};

// Groups with the members of those that are open behind them.
std::vector<LiveLine> lines_of(const Opened& opened, std::vector<LiveRow> rows, Nanoseconds now,
                               const ViewState& view) {
  std::vector<LiveLine> lines;
  for (LiveRow& row : rows) {
    const bool is_open = row.is_group() && view.open_groups.contains(row.name);
    const std::vector<BufferId> members = is_open ? row.members : std::vector<BufferId>();
    lines.push_back({std::move(row)});
    for (const BufferId member : members) lines.push_back({row_of(opened, member, now), true});
  }
  return lines;
}

void draw_summary(ViewModel& model, const Opened& opened, const ViewState& view,
                  const LiveSet& live) {
  if (!has_memory(opened.recording)) return text_line("no memory was recorded", theme::faint);
  std::string text =
      fmt::format("{} alive in {} at {}", to_text(live.bytes), count_text(live.count, "buffer"),
                  to_text(Nanoseconds{static_cast<std::int64_t>(view.cursor_time)}));
  if (live.state == opened.peak()) text += ", the peak";
  if (live.count > live.largest.size())
    text += fmt::format("; listed are the {} largest, {} of it", grouped(live.largest.size()),
                        to_text(live.bytes_listed));
  const bool is_current = model.live().is_complete();
  text_line(is_current ? text : text + " (catching up ...)",
            is_current ? theme::faint : theme::alarm);
}

void draw_filter(ViewState& view) {
  ImGui::Checkbox("group blocks", &view.groups_blocks);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
  ImGui::InputTextWithHint("##filter", "filter", &view.live_filter);
  ImGui::SameLine();
}

}  // namespace

void draw_live_set(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  if (model.live().owner() != &opened) return text_line("counting ...", theme::faint);
  const LiveSet& live = model.live().current();
  draw_filter(view);
  draw_summary(model, opened, view, live);
  const ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_ScrollY |
                                ImGuiTableFlags_ScrollX | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerV |
                                ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_PadOuterX;
  if (!ImGui::BeginTable("live", 8, flags)) return;
  const float em = ImGui::GetFontSize();
  // Names and heads stay in sight.
  ImGui::TableSetupScrollFreeze(1, 1);
  const auto column = [&](const char* name, float width, ImGuiTableColumnFlags more = 0) {
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed | more, width * em);
  };
  column("tensor", 16);
  column("size", 5.4F,
         ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_PreferSortDescending);
  column("category", 7.6F);
  column("next use", 5.4F);
  column("decision", 22);
  column("age", 5.5F, ImGuiTableColumnFlags_PreferSortDescending);
  column("op", 14);
  column("block", 8);
  ImGui::TableHeadersRow();
  // Every frame anew: the set follows the cursor, and a thousand rows are quickly sorted.
  const Nanoseconds now{static_cast<std::int64_t>(view.cursor_time)};
  std::vector<LiveRow> rows = rows_of(opened, live, now, view.live_filter, view.groups_blocks);
  sort(opened, rows);
  const std::vector<LiveLine> lines = lines_of(opened, std::move(rows), now, view);
  view.facts.live_rows = lines.size();
  // Only the rows that can be seen are made: each has a dozen texts.
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(lines.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const LiveLine& line = lines[static_cast<std::size_t>(i)];
      draw_row(opened, line.row, live.bytes, line.is_member, view);
    }
  ImGui::EndTable();
}

}  // namespace tidemark::gui
