// The table of what is alive at the cursor.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// What was decided comes before where it is: the tensor's name says the latter already.
enum Column : int { Tensor, SizeColumn, CategoryColumn, NextUse, Decision, Age, Op, Block };

// The decimals keep the order that the eye expects; the sort uses the bytes themselves.
struct Row {
  BufferId id;
  Nanoseconds born{}, next_use{};
};

constexpr Nanoseconds never{INT64_MAX};

std::vector<Row> rows_of(const Opened& opened, const ViewState& view, const LiveSet& live) {
  const Nanoseconds now{static_cast<std::int64_t>(view.cursor_time)};
  std::vector<Row> rows;
  for (const BufferId id : live.largest) {
    const auto next = opened.buffers().next_use(id, now);
    rows.push_back({id, opened.memory().begin_of(opened.buffers().first_state(id)),
                    next ? opened[*next].begin : never});
  }
  return rows;
}

template <typename Key>
void sort_by(std::vector<Row>& rows, bool descending, Key key) {
  if (descending) {
    std::ranges::stable_sort(rows, std::ranges::greater{}, key);
  } else {
    std::ranges::stable_sort(rows, {}, key);
  }
}

void sort(const Opened& opened, std::vector<Row>& rows) {
  const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (!specs || specs->SpecsCount == 0) return;
  const bool down = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
  switch (specs->Specs[0].ColumnIndex) {
    case Tensor:
      return sort_by(rows, down, [&](const Row& row) { return opened.describe(row.id); });
    case CategoryColumn:
      return sort_by(rows, down,
                     [&](const Row& row) { return opened.schedule()[row.id].category; });
    case Op:
      return sort_by(rows, down, [&](const Row& row) { return opened.home_of(row.id); });
    case Block:
      return sort_by(rows, down, [&](const Row& row) { return opened.block_of(row.id); });
    case Age:
      return sort_by(rows, !down, [](const Row& row) { return row.born; });
    case NextUse:
      return sort_by(rows, down, [](const Row& row) { return row.next_use; });
    case Decision:
      return sort_by(rows, down, [&](const Row& row) { return opened.decision_of(row.id); });
    default:
      return sort_by(rows, down, [&](const Row& row) { return opened.schedule()[row.id].size; });
  }
}

void draw_category(Category category) {
  ImGui::TableNextColumn();
  const float em = ImGui::GetFontSize();
  draw_key(*ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), to_string(category),
           color_of(category), theme::text);
  ImGui::Dummy({8 * em, em});
}

void draw_row(const Opened& opened, const Row& row, ViewState& view) {
  const Buffer& buffer = opened.schedule()[row.id];
  const auto now = Nanoseconds{static_cast<std::int64_t>(view.cursor_time)};
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(static_cast<int>(index(row.id)));
  const std::string name = opened.describe(row.id);
  if (ImGui::Selectable("##row", belongs_to(opened, row.id, view.selection),
                        ImGuiSelectableFlags_SpanAllColumns)) {
    select_buffer(opened, row.id, view);
    reveal(opened, view);
  }
  ImGui::SameLine(0, 0);
  fitted_line(name);
  ImGui::PopID();
  number_cell(to_text(buffer.size));
  draw_category(buffer.category);
  number_cell(row.next_use == never ? "none" : "in " + to_text(row.next_use - now));
  text_cell(opened.why_alive(row.id),
            opened.decision_of(row.id).empty() ? theme::faint : theme::text);
  number_cell(buffer.persistent ? "whole step" : to_text(now - row.born));
  const OpId op = opened.home_of(row.id);
  text_cell(op == no_op ? std::string_view("-") : std::string_view(opened.trace()[op].name),
            theme::faint);
  text_cell(opened.block_name(opened.block_of(row.id)), theme::faint);
}

void draw_summary(ViewModel& model, const Opened& opened, const ViewState& view,
                  const LiveSet& live) {
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

}  // namespace

void draw_live_set(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  if (model.live().owner() != &opened) return text_line("counting ...", theme::faint);
  const LiveSet& live = model.live().current();
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
  column("tensor", 14);
  column("size", 4.6F,
         ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_PreferSortDescending);
  column("category", 7.6F);
  column("next use", 5.4F);
  column("decision", 22);
  column("age", 5.5F, ImGuiTableColumnFlags_PreferSortDescending);
  column("op", 14);
  column("block", 8);
  ImGui::TableHeadersRow();
  // Every frame anew: the set follows the cursor, and a thousand rows are quickly sorted.
  std::vector<Row> rows = rows_of(opened, view, live);
  sort(opened, rows);
  // Only the rows that can be seen are made: each has a dozen texts.
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(opened, rows[static_cast<std::size_t>(i)], view);
  ImGui::EndTable();
}

}  // namespace tidemark::gui
