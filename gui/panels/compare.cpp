// Two recordings side by side in numbers; their curves and lanes are in the timeline.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "gui/panels/panels.h"

namespace tidemark {
namespace {

std::string change_text(const Difference& row) {
  if (row.change() == 0) return "=";
  if (row.a == 0) return "new";
  if (row.b == 0) return "gone";
  const std::string sign = row.change() > 0 ? "+" : "-";
  return fmt::format(
      "{}{} ({}{:.1f} %)", sign, amount_text(row.unit, std::abs(row.change())), sign,
      100 * static_cast<double>(std::abs(row.change())) / static_cast<double>(row.a));
}

// A bar from the middle: to the right more, to the left less, as long as the largest of its group.
void draw_bar(const Difference& row, std::int64_t largest) {
  ImGui::TableNextColumn();
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float half = 5 * em, middle = at.x + half;
  const float length =
      half * static_cast<float>(static_cast<double>(row.change()) /
                                static_cast<double>(std::max<std::int64_t>(1, largest)));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddLine({middle, at.y}, {middle, at.y + em}, ink(theme::line));
  list.AddRectFilled({std::min(middle, middle + length), at.y + 2},
                     {std::max(middle, middle + length), at.y + em - 1},
                     ink(row.change() > 0 ? palette::vermilion : palette::green));
  ImGui::Dummy({2 * half, em});
}

std::int64_t largest_change(const std::vector<Difference>& rows, const Difference& like) {
  std::int64_t largest = 0;
  for (const Difference& row : rows)
    if (row.group == like.group && row.unit == like.unit)
      largest = std::max(largest, std::abs(row.change()));
  return largest;
}

void draw_rows(const std::vector<Difference>& rows) {
  std::string_view group;
  for (const Difference& row : rows) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (row.group != group) text_line(row.group, theme::accent);
    group = row.group;
    ImGui::TableNextColumn();
    text_line(row.name);
    for (const std::int64_t amount : {row.a, row.b}) {
      ImGui::TableNextColumn();
      text_line(amount_text(row.unit, amount), amount == 0 ? theme::faint : theme::text);
    }
    ImGui::TableNextColumn();
    text_line(change_text(row), row.change() == 0 ? theme::faint : theme::text);
    draw_bar(row, largest_change(rows, row));
  }
}

}  // namespace

void draw_compare(ViewModel& model, ViewState& view) {
  const Opened* against = model.against(view);
  if (!against)
    return text_line(
        "Choose what to compare with above, or Keep this one and change it: the other's curve is "
        "then drawn as a white line, its lanes below, and the differences are listed here.",
        theme::faint);
  const Opened& opened = *model.shown(view);
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerV |
                                ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable("differences", 6, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  const auto column = [&](const std::string& name, float width) {
    ImGui::TableSetupColumn(name.c_str(), ImGuiTableColumnFlags_WidthFixed, width * em);
  };
  column("", 7), column("what", 10);
  column(fmt::format("A: {}##a", opened.recording.strategy), 9);
  column(fmt::format("B: {}##b", against->recording.strategy), 9);
  column("from A to B", 12), column("", 11);
  ImGui::TableHeadersRow();
  draw_rows(model.differences(view));
  ImGui::EndTable();
}

}  // namespace tidemark
