// Two recordings side by side in numbers; their curves and lanes are in the timeline.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "gui/facts.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

std::string amount_text(diff::Measure measure, std::int64_t amount) {
  if (measure == diff::Measure::Size) return to_text(Bytes{amount});
  if (measure == diff::Measure::Time) return to_text(Nanoseconds{amount});
  return fmt::format("{}", amount);
}

std::string row_change_text(diff::Measure measure, const diff::DiffRow& row) {
  const std::string sign = row.change() > 0 ? "+" : "-";
  const std::string change = sign + amount_text(measure, std::abs(row.change()));
  if (!row.before) return change + "  new";
  if (!row.after) return change + "  gone";
  if (*row.before == 0) return change;
  return fmt::format("{}  {}{:.1f} %", change, sign,
                     100 * static_cast<double>(std::abs(row.change())) /
                         static_cast<double>(std::abs(*row.before)));
}

// A bar from the middle: to the right more, to the left less, as long as the largest of its table.
void draw_bar(const diff::DiffRow& row, std::int64_t largest) {
  ImGui::TableNextColumn();
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float half = ImGui::GetContentRegionAvail().x / 2, middle = at.x + half;
  const float length =
      half * static_cast<float>(static_cast<double>(row.change()) /
                                static_cast<double>(std::max<std::int64_t>(1, largest)));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddLine({middle, at.y}, {middle, at.y + em}, ink(theme::line));
  list.AddRectFilled({std::min(middle, middle + length), at.y + 2},
                     {std::max(middle, middle + length), at.y + em - 1},
                     ink(row.change() > 0 ? verdict::worse : verdict::better));
}

// What a row is about, if it is something that the other panels can mark.
Selection selection_of(const Opened& opened, std::string_view key) {
  for (std::size_t c = 0; c < category_count; ++c)
    if (to_string(static_cast<Category>(c)) == key) return {.category = static_cast<Category>(c)};
  const auto& blocks = opened.trace().blocks;
  const auto found = std::ranges::find(blocks, key, &Block::name);
  if (found == blocks.end()) return {};
  return {.block = static_cast<std::int32_t>(found - blocks.begin())};
}

// A line of the table: a heading, a row that differs, or the sum of a table.
struct Line {
  const diff::DiffTable* table;
  const diff::DiffRow* row = nullptr;
};

std::vector<Line> lines_of(const diff::Diff& diff) {
  std::vector<Line> lines;
  for (const diff::DiffTable& table : diff.tables) {
    if (table.rows.empty()) continue;
    lines.push_back({&table});
    for (const diff::DiffRow& row : table.rows) lines.push_back({&table, &row});
    if (table.whole) lines.push_back({&table, &*table.whole});
  }
  return lines;
}

void draw_heading(const diff::DiffTable& table) {
  ImGui::TableNextColumn();
  text_line(table.name, theme::accent);
  if (table.equal == 0) return;
  ImGui::TableSetColumnIndex(3);
  text_line(fmt::format("{} unchanged", table.equal), theme::faint);
}

void draw_row(const Opened& opened, const Line& line, ViewState& view) {
  const auto& [table, row] = line;
  const bool is_sum = table->whole && row == &*table->whole;
  const Selection selects = selection_of(opened, row->key);
  ImGui::TableNextColumn();
  const bool is_chosen = !selects.is_empty() && selects == view.selection;
  if (ImGui::Selectable(row->key.c_str(), is_chosen, ImGuiSelectableFlags_SpanAllColumns))
    view.selection = selects;
  for (const auto& amount : {row->before, row->after})
    number_cell(amount ? amount_text(table->measure, *amount) : "-",
                amount ? theme::text : theme::faint);
  number_cell(row->change() == 0 ? "=" : row_change_text(table->measure, *row));
  if (is_sum) return;  // it is as long as all others together
  draw_bar(*row, std::abs(table->rows.front().change()));
}

void draw_lines(const Opened& opened, const std::vector<Line>& lines, ViewState& view) {
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(lines.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Line& line = lines[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::PushID(i);
      line.row ? draw_row(opened, line, view) : draw_heading(*line.table);
      ImGui::PopID();
    }
}

// Tensors of one recording's peak that the other has no partner for.
void list_unmatched(const char* title, const std::vector<diff::Unmatched>& rows, Color color) {
  if (rows.empty()) return;
  const std::string name = fmt::format("{} ({})", title, rows.size());
  if (!ImGui::TreeNode(title, "%s", name.c_str())) return;
  constexpr std::size_t most_listed = 30;
  for (std::size_t i = 0; i < std::min(rows.size(), most_listed); ++i) {
    const std::string times = rows[i].count > 1 ? fmt::format("{} × ", rows[i].count) : "";
    fitted_line(fmt::format("{}{}  {}", times, to_text(rows[i].size), rows[i].name), color);
  }
  if (rows.size() > most_listed)
    text_line(fmt::format("and {} more", rows.size() - most_listed), theme::faint);
  ImGui::TreePop();
}

// What makes the difference, each with its largest blocks.
void list_causes(const std::vector<NamedCause>& causes) {
  constexpr std::size_t most_listed = 8;
  for (const auto& [text, cause] : causes) {
    const float room = ImGui::GetContentRegionAvail().x - 2 * ImGui::GetFontSize();
    const std::string line =
        fitted(fmt::format("{}  {}", change_text(Bytes{}, cause.bytes), text), room);
    if (!ImGui::TreeNode(text.c_str(), "%s", line.c_str())) continue;
    for (std::size_t i = 0; i < std::min(cause.tensors.size(), most_listed); ++i) {
      const beside::CauseTensor& tensor = cause.tensors[i];
      fitted_line(
          fmt::format("{} in {}  {}  {}", to_text(tensor.size), count_text(tensor.blocks, "block"),
                      tensor.tensor, tensor.allocated_by),
          theme::faint);
    }
    if (cause.tensors.size() > most_listed)
      text_line(fmt::format("and {} more", cause.tensors.size() - most_listed), theme::faint);
    ImGui::TreePop();
  }
}

// Why one needs more at its peak, tensor by tensor.
void draw_match(const RecordingDiff& made, ViewState& view) {
  view.facts.headline = made.headline;
  text_wrapped(made.headline, theme::bright);
  view.facts.causes = made.causes.size();
  if (!made.causes.empty()) return list_causes(made.causes);
  const diff::TensorMatch& match = made.tensors;
  fitted_line(
      fmt::format("alive at the peaks: {} and {}; {} tensors of {} have a partner of their size",
                  to_text(match.before), to_text(match.after), match.matched,
                  to_text(match.matched_bytes)),
      theme::faint);
  list_unmatched("more", match.extra, verdict::worse);
  list_unmatched("less", match.missing, verdict::better);
}

// Equal tables are named, so that what is missing below is not taken for forgotten.
void draw_summary(const diff::Diff& diff, bool is_catching_up) {
  std::string equal;
  for (const diff::DiffTable& table : diff.tables)
    if (table.rows.empty()) equal += (equal.empty() ? "Equal: " : "; ") + table.name;
  if (is_catching_up) text_line("(catching up ...)", theme::alarm);
  if (!equal.empty()) text_wrapped(equal, theme::faint);
}

}  // namespace

void draw_compare(ViewModel& model, ViewState& view) {
  if (!model.against(view))
    return text_wrapped(
        "Choose what to compare with above, or Keep this one and change it: the other's curve is "
        "then drawn as a white line, its lanes below, and the differences are listed here.",
        theme::faint);
  const NewestDiff& made = model.newest_diff(view);
  // While something is dragged the last answer stays, marked as such, until the next is there.
  const RecordingDiff* newest = made.newest();
  if (!newest) return text_line("counting ...", theme::faint);
  draw_match(*newest, view);
  const diff::Diff* const diff = &newest->numbers;
  draw_summary(*diff, made.is_catching_up());
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("differences", 5, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  const auto column = [&](const char* name, float width) {
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, width * em);
  };
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch);
  column("A", 5.5F), column("B", 5.5F), column("from A to B", 11), column("", 6);
  ImGui::TableHeadersRow();
  draw_lines(*model.shown(view), lines_of(*diff), view);
  ImGui::EndTable();
}

}  // namespace tidemark::gui
