// The table of what would lower the peak: two lines per lever, with what it changes beside.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/facts.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// Right edges of the columns, in letters from the right end of a row; below the second width the
// columns of the first are left out.
constexpr float needs_at = 9.5F, saves_at = 5.6F + needs_at, time_at = 4, fits_at = 0.4F;
constexpr float narrow = 34;

using Rows = std::vector<const TriedLever*>;

Rows sorted(Rows rows, LeverOrder order, Measure measure) {
  switch (order) {
    case LeverOrder::Best:
      break;
    case LeverOrder::Memory:
      std::ranges::stable_sort(rows, {}, [&](const TriedLever* lever) {
        return measured(lever->report, measure).count;
      });
      break;
    case LeverOrder::Time:
      std::ranges::stable_sort(rows, std::ranges::greater{}, [](const TriedLever* lever) {
        return lever->report.samples_per_second;
      });
      break;
  }
  return rows;
}

template <typename Table, typename Enum>
void choose(const char* id, float width, const Table& table, Enum& value) {
  ImGui::SetNextItemWidth(width * ImGui::GetFontSize());
  if (!begin_choice(id, std::string(table[static_cast<std::size_t>(value)].name))) return;
  for (const auto& row : table)
    if (ImGui::Selectable(std::string(row.name).c_str(), value == row.value)) value = row.value;
  ImGui::EndCombo();
}

std::string heading(const LeverTable& table, Measure measure, bool is_catching_up) {
  const Report& now = table.now();
  std::string text = fmt::format("{} {}", to_text(measured(now, measure)), to_string(measure));
  if (!now.fits)
    text += now.short_by.count > 0 ? fmt::format(", {} too much", to_text(now.short_by))
                                   : ", kept out by fragmentation";
  if (is_catching_up)
    text += fmt::format(" (trying {} ...)", table.next.empty() ? "strategies" : table.next);
  return text;
}

void draw_choices(const LeverTable& table, ViewState& view, bool is_catching_up) {
  ImGui::AlignTextToFramePadding();
  text_line(heading(table, view.measure, is_catching_up),
            table.now().fits ? theme::text : theme::alarm);
  ImGui::SameLine();
  choose("##measure", 7, measures, view.measure);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("the memory that levers lower");
  ImGui::SameLine();
  choose("##order", 6.5F, lever_orders, view.lever_order);
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "best: where the step does not fit, first what makes it fit,\n"
        "without a caution and fast; then what saves most");
}

// What those that are collected would do together; else how to collect. In a line of its own, which
// is there always: rows must not move under the mouse.
void draw_collected(const LeverTable& table, ViewModel& model, ViewState& view) {
  if (view.marked.empty()) return text_line("click: apply, Ctrl + click: collect", theme::faint);
  const auto made = model.imagined();
  std::string text = fmt::format("{} collected", view.marked.size());
  if (made)
    text += fmt::format(
        ": {}, {} in time",
        change_text(measured(table.now(), view.measure), measured(made->report, view.measure)),
        change_text(time_ratio(made->report, table.now())));
  text_line(text, theme::bright);
  ImGui::SameLine();
  if (ImGui::SmallButton("apply")) model.pull(view.marked.front(), view);
  ImGui::SameLine();
  if (ImGui::SmallButton("clear")) view.marked.clear();
}

// The share that would be saved, behind the number that says so.
void draw_bar(ImDrawList& list, const Box& box, double share) {
  const float width = box.width() * static_cast<float>(std::clamp(share, 0.0, 1.0));
  list.AddRectFilled({box.x0, box.y0 + 2}, {box.x0 + width, box.y1 - 1}, ink(theme::accent, 70), 2);
}

void draw_numbers(ImDrawList& list, const Box& line, const TriedLever& lever,
                  const LeverTable& table, Measure measure) {
  const float em = ImGui::GetFontSize();
  const Bytes before = measured(table.now(), measure), after = measured(lever.report, measure);
  const auto column = [&](float at, float width) {
    return Box{line.x1 - (at + width) * em, line.y0, line.x1 - at * em, line.y1};
  };
  if (line.width() > narrow * em) {
    const Box saves = column(saves_at, 6.4F);
    draw_bar(list, saves,
             1 - static_cast<double>(after.count) /
                     static_cast<double>(std::max<std::int64_t>(1, before.count)));
    draw_text(list, saves, change_text(before, after), theme::text, Align::Right);
  }
  draw_text(list, column(needs_at, 5.4F), to_text(after), theme::bright, Align::Right);
  draw_text(list, column(time_at, 5), change_text(time_ratio(lever.report, table.now())),
            theme::text, Align::Right);
  draw_text(list, column(fits_at, 3), lever.report.fits ? "fits" : "no",
            lever.report.fits ? theme::accent : theme::alarm, Align::Right);
}

// Cautions first: they stay in sight where there is no room for both.
// False if there is no room for all of them.
bool draw_words(ImDrawList& list, Box line, const TriedLever& lever) {
  if (!lever.caution.empty()) {
    const std::string caution = "⚠ " + lever.caution;
    draw_text(list, line, caution, theme::alarm);
    line.x0 += text_width(caution + "  ");
  }
  if (line.width() > 3 * ImGui::GetFontSize()) draw_text(list, line, lever.does, theme::faint);
  return text_width(lever.does) <= line.width();
}

void draw_lever(const TriedLever& lever, const LeverTable& table, ViewModel& model,
                ViewState& view) {
  const float em = ImGui::GetFontSize(), height = 2.5F * em;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const Box row{at.x, at.y, at.x + ImGui::GetContentRegionAvail().x, at.y + height};
  ImGui::PushID(lever.name.c_str());
  ImGui::InvisibleButton("lever", {std::max(1.0F, row.width()), height});
  ImGui::PopID();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const bool is_marked = std::ranges::find(view.marked, lever.name) != view.marked.end();
  const bool is_hovered = ImGui::IsItemHovered();
  if (is_hovered || is_marked)
    list.AddRectFilled(row.min(), row.max(), ink(theme::accent, is_marked ? 46 : 26), 3);
  if (is_hovered) use_lever(lever, model, view);
  const float pad = 0.4F * em;
  const Box first{row.x0 + pad, row.y0, row.x1, row.y0 + 1.3F * em};
  const float numbers = (first.width() > narrow * em ? saves_at + 6.8F : needs_at + 5.6F) * em;
  draw_text(list, {first.x0, first.y0, first.x1 - numbers, first.y1},
            (is_marked ? "• " : "") + lever.name, theme::bright);
  draw_numbers(list, first, lever, table, view.measure);
  const bool is_whole = draw_words(list, {first.x0, first.y1 - 2, row.x1 - pad, row.y1 - 1}, lever);
  if (is_hovered && !is_whole) describe_lever(lever);
}

// Of the numbers, at the right of the line in which the levers' own head is said.
void draw_heads() {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::GetContentRegionAvail().x;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto head = [&](float at_right, float width, std::string_view text) {
    draw_text(list,
              {right - (at_right + width) * em, at.y, right - at_right * em, at.y + 1.2F * em},
              text, theme::faint, Align::Right);
  };
  if (right - at.x > narrow * em) head(saves_at, 6.4F, "saves");
  head(needs_at, 5.4F, "needs");
  head(time_at, 5, "time");
}

}  // namespace

void describe_lever(const TriedLever& lever) {
  ImGui::SetNextWindowSize({30 * ImGui::GetFontSize(), 0});
  ImGui::BeginTooltip();
  text_wrapped(lever.name, theme::bright);
  text_wrapped(lever.does);
  if (!lever.caution.empty()) text_wrapped("⚠ " + lever.caution, theme::alarm);
  for (const Fact& fact : facts_of(lever.report))
    text_wrapped(fmt::format("{}: {}", fact.name, fact.value),
                 fact.name == "fits" && !lever.report.fits ? theme::alarm : theme::text);
  if (!lever.report.peak_at.empty())
    text_wrapped(fmt::format("the peak is then at the {}", lever.report.peak_at), theme::faint);
  ImGui::EndTooltip();
}

void use_lever(const TriedLever& lever, ViewModel& model, ViewState& view) {
  view.hovered_lever = lever.name;
  if (!ImGui::IsItemClicked()) return;
  if (!ImGui::GetIO().KeyCtrl) return model.pull(lever.name, view);
  if (std::erase(view.marked, lever.name) == 0) view.marked.push_back(lever.name);
}

void draw_levers(ViewModel& model, ViewState& view) {
  const auto table = model.levers().newest();
  if (!table) return text_line("trying strategies ...", theme::faint);
  draw_choices(*table, view, model.levers().is_catching_up());
  draw_heads();
  draw_collected(*table, model, view);
  const Rows rows = sorted(lowering(*table, view.measure), view.lever_order, view.measure);
  view.facts.levers = rows.size();
  ImGui::BeginChild("levers");
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 2});
  if (!rows.empty()) view.facts.first_lever = ImGui::GetCursorScreenPos().y;
  if (rows.empty())
    text_wrapped(
        "Nothing that Tidemark knows lowers this peak. A smaller batch, a shorter sequence "
        "or a smaller model does.",
        theme::faint);
  for (const TriedLever* lever : rows) draw_lever(*lever, *table, model, view);
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

}  // namespace tidemark::gui
