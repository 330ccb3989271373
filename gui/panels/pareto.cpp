// Memory against time of many strategies: what each costs, and which of them nothing beats.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/pictures.h"
#include "gui/facts.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// Which memory: live, allocated and reserved differ by as much as strategies do.
constexpr const char* pareto_title = "all strategies: time against memory";
constexpr const char* memory_title = "peak of allocated memory";

struct Plot {
  Box box;
  Axis memory;  ///< along x, bytes
  double fastest, slowest;

  ImVec2 place(const Report& row) const {
    const double share = (static_cast<double>(row.step.count()) - fastest) / (slowest - fastest);
    return {memory.to_pixel(static_cast<double>(row.allocated_peak.count)),
            box.y1 - static_cast<float>(share) * box.height()};
  }
};

Plot plot_of(const std::vector<Report>& rows, const Box& box) {
  double least = 1e300, most = 1, fastest = 1e300, slowest = 1;
  for (const Report& row : rows) {
    if (!row.applies) continue;
    const auto bytes = static_cast<double>(row.allocated_peak.count);
    const auto time = static_cast<double>(row.step.count());
    least = std::min(least, bytes), most = std::max(most, bytes);
    fastest = std::min(fastest, time), slowest = std::max(slowest, time);
  }
  // At least some percent of the whole: where all are the same, rounding is not blown up.
  const double room = std::max(0.08 * (most - least), 0.05 * most),
               above = std::max(0.08 * (slowest - fastest), 0.05 * slowest);
  return {box, {{least - room, most + room}, box.x0, box.x1}, fastest - above, slowest + above};
}

void draw_axes(ImDrawList& list, const Plot& plot, float em) {
  const Box& box = plot.box;
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot));
  const Ticks ticks = binary_ticks(plot.memory.range, 5 * em * plot.memory.per_pixel());
  for (double bytes = ticks.first; bytes < plot.memory.range.end; bytes += ticks.step) {
    const float x = std::floor(plot.memory.to_pixel(bytes));
    list.AddLine({x, box.y0}, {x, box.y1}, ink(theme::line, 130));
    draw_text(list, {x - 2.8F * em, box.y1, x + 2.8F * em, box.y1 + 1.3F * em},
              byte_tick_text(bytes, ticks.step), theme::faint, Align::Center);
  }
  draw_text(list, {box.x0, box.y1 + 1.3F * em, box.x1, box.y1 + 2.6F * em}, memory_title,
            theme::faint, Align::Center);
  const Range times{plot.fastest, plot.slowest};
  const Ticks steps =
      decimal_ticks(times, 2.4 * static_cast<double>(em / box.height()) * times.span());
  for (double time = steps.first; time < times.end; time += steps.step) {
    const float y = box.y1 - static_cast<float>((time - times.begin) / times.span()) * box.height();
    list.AddLine({box.x0, y}, {box.x1, y}, ink(theme::line, 130));
    draw_text(list, {box.x0 - 6 * em, y - em, box.x0 - 4, y + em}, tick_text(time, steps.step),
              theme::faint, Align::Right);
  }
}

// The capacity divides what fits from what does not.
void draw_capacity(ImDrawList& list, const Plot& plot, Bytes capacity) {
  const float x = plot.memory.to_pixel(static_cast<double>(capacity.count));
  if (x >= plot.box.x1) return;
  const float from = std::max(plot.box.x0, x);
  list.AddRectFilled({from, plot.box.y0}, plot.box.max(), ink(theme::alarm, 26));
  list.AddLine({from, plot.box.y0}, {from, plot.box.y1}, ink(theme::alarm, 190), 1.5F);
}

void draw_front(ImDrawList& list, const Plot& plot, const std::vector<Report>& rows,
                const std::vector<std::size_t>& front) {
  std::vector<ImVec2> line;
  for (const std::size_t i : front) line.push_back(plot.place(rows[i]));
  list.AddPolyline(line.data(), static_cast<int>(line.size()), ink(theme::accent, 150), 0, 1.5F);
}

void draw_tooltip(const Report& row, bool is_best) {
  ImGui::BeginTooltip();
  text_line(row.strategy, theme::bright);
  for (const Fact& fact : facts_of(row))
    text_line(fmt::format("{}: {}", fact.name, fact.value),
              fact.name == "fits" && !row.fits ? theme::alarm : theme::text);
  if (is_best) text_line("no other needs less of both", theme::accent);
  text_line("click to show it", theme::faint);
  ImGui::EndTooltip();
}

// Beside the point, on the side that has more room; below it where it would leave the plot.
void label_point(ImDrawList& list, const Box& box, ImVec2 p, std::string_view text) {
  const float em = ImGui::GetFontSize();
  const bool is_right = p.x > (box.x0 + box.x1) / 2;
  const float y = p.y - 2 * em > box.y0 ? p.y - 1.9F * em : p.y + 0.6F * em;
  const Box label{is_right ? box.x0 : p.x + 0.5F * em, y, is_right ? p.x - 0.2F * em : box.x1,
                  y + 1.3F * em};
  draw_text(list, label, text, theme::bright, is_right ? Align::Right : Align::Left);
}

void draw_points(const Plot& plot, const Comparison& comparison, ViewModel& model,
                 ViewState& view) {
  const std::vector<Report>& rows = comparison.rows;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float em = ImGui::GetFontSize();
  const std::vector<std::size_t> front = exports::pareto_front(rows);
  const auto is_best = [&](std::size_t i) { return std::ranges::find(front, i) != front.end(); };
  draw_front(list, plot, rows, front);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const std::string& shown = model.what_if()->strategies.front().text;
  std::optional<std::size_t> hovered;
  // Within a letter's width of the mouse: points are small.
  float nearest = em * em;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].applies) continue;
    const ImVec2 p = plot.place(rows[i]);
    const float distance = (p.x - mouse.x) * (p.x - mouse.x) + (p.y - mouse.y) * (p.y - mouse.y);
    if (ImGui::IsItemHovered() && distance < nearest) nearest = distance, hovered = i;
    const Color color = !rows[i].fits ? theme::alarm : is_best(i) ? theme::accent : theme::faint;
    list.AddCircleFilled(p, 0.3F * em, ink(color));
    if (rows[i].strategy != shown) continue;
    list.AddCircle(p, 0.55F * em, ink(theme::bright), 0, 2);
    label_point(list, plot.box, p, shown);
  }
  if (!hovered) return;
  list.AddCircle(plot.place(rows[*hovered]), 0.45F * em, ink(theme::bright), 0, 1.5F);
  draw_tooltip(rows[*hovered], is_best(*hovered));
  if (!ImGui::IsItemClicked()) return;
  WhatIf what_if = *model.what_if();
  what_if.strategies.front() = comparison.scenario.strategies[*hovered];
  what_if.planned.reset();
  model.ask(std::move(what_if), view);
}

}  // namespace

void draw_pareto(ViewModel& model, ViewState& view) {
  if (!model.what_if()) return;
  const auto comparison = model.frontier().newest();
  ImGui::Spacing();
  text_line(model.frontier().is_catching_up() ? "all strategies: catching up ..." : pareto_title,
            theme::faint);
  // Before the first comparison is there, its heading says that it is being made.
  if (!comparison) return;
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float text_height = 6 * em;
  const float height = std::clamp(room.y - text_height, 9 * em, 18 * em);
  ImGui::InvisibleButton("pareto", {std::max(1.0F, room.x), height});
  const Box box{at.x + 4.2F * em, at.y + 4, at.x + room.x - 4, at.y + height - 2.8F * em};
  const bool has_points = std::ranges::any_of(comparison->rows, &Report::applies);
  if (has_points) {
    const Plot plot = plot_of(comparison->rows, box);
    draw_axes(*ImGui::GetWindowDrawList(), plot, em);
    draw_capacity(*ImGui::GetWindowDrawList(), plot, comparison->budget.capacity);
    draw_points(plot, *comparison, model, view);
  }
  text_wrapped(to_text(comparison->conclusion));
}

}  // namespace tidemark::gui
