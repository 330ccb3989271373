// Memory against time of all levers: what each costs, and which of them nothing beats.
#include <fmt/format.h>

#include <algorithm>

#include "gui/facts.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

struct Plot {
  Box box;
  Measure measure;
  Axis memory;              ///< along x, bytes
  double fastest, slowest;  ///< ms of a sample

  static double time_of(const Report& row) { return 1e9 / std::max(1e-9, row.samples_per_second); }
  ImVec2 place(const Report& row) const {
    const double share = (time_of(row) - fastest) / (slowest - fastest);
    return {memory.to_pixel(static_cast<double>(measured(row, measure).count)),
            box.y1 - static_cast<float>(share) * box.height()};
  }
};

// Beyond this many times the time of what is there, a lever is not drawn: it would flatten the
// rest.
constexpr double slowest_drawn = 2.2;

bool is_drawn(const TriedLever& lever, const LeverTable& table) {
  return time_ratio(lever.report, table.now()) < slowest_drawn;
}

Plot plot_of(const LeverTable& table, Measure measure, const Box& box) {
  double least = 1e300, most = 1, fastest = 1e300, slowest = 1;
  const auto add = [&](const Report& row) {
    const auto bytes = static_cast<double>(measured(row, measure).count);
    const double time = Plot::time_of(row);
    least = std::min(least, bytes), most = std::max(most, bytes);
    fastest = std::min(fastest, time), slowest = std::max(slowest, time);
  };
  add(table.now());
  for (const TriedLever& lever : table.tried)
    if (is_drawn(lever, table)) add(lever.report);
  // At least some percent of the whole: where all are the same, rounding is not blown up.
  const double room = std::max(0.08 * (most - least), 0.05 * most),
               above = std::max(0.1 * (slowest - fastest), 0.05 * slowest);
  return {box,
          measure,
          {{least - room, most + room}, box.x0, box.x1},
          fastest - above,
          slowest + above};
}

void draw_axes(ImDrawList& list, const Plot& plot, float em) {
  const Box& box = plot.box;
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot));
  const Ticks ticks = binary_ticks(plot.memory.range, 5 * em * plot.memory.per_pixel());
  for (double bytes = ticks.first; bytes < plot.memory.range.end; bytes += ticks.step) {
    const float x = std::floor(plot.memory.to_pixel(bytes));
    list.AddLine({x, box.y0}, {x, box.y1}, ink(theme::line, 130));
    const std::string text = byte_tick_text(bytes, ticks.step);
    const float half = text_width(text) / 2 + 1;  // the last one ends where the plot does
    const float middle = std::min(x, box.x1 - half);
    draw_text(list, {middle - half, box.y1, middle + half, box.y1 + 1.3F * em}, text, theme::faint,
              Align::Center);
  }
  draw_text(list, {box.x0, box.y1 + 1.2F * em, box.x1, box.y1 + 2.4F * em},
            fmt::format("{} peak", to_string(plot.measure)), theme::faint, Align::Center);
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

// All budgets between those of the table.
void draw_plans(ImDrawList& list, const Plot& plot, const PlanFront& plans) {
  std::vector<ImVec2> line;
  for (const FrontPoint& point : plans.points)
    if (const ImVec2 p = plot.place(point.report); p.y > plot.box.y0) line.push_back(p);
  list.AddPolyline(line.data(), static_cast<int>(line.size()), ink(theme::accent, 150), 0, 1.5F);
}

// Names beside points, each where no other name is; what finds no place has its name in a tooltip.
class Names {
 public:
  explicit Names(const Box& box) : box_(box) {}

  void put(ImDrawList& list, ImVec2 p, std::string_view text, Color color) {
    const float em = ImGui::GetFontSize(), width = text_width(text) + 2;
    for (const float dy : {-1.5F, -0.6F, 0.3F}) {
      for (const float x : {p.x + 0.5F * em, p.x - 0.5F * em - width}) {
        const Box label{x, p.y + dy * em, x + width, p.y + (dy + 1.2F) * em};
        if (!is_free(label)) continue;
        taken_.push_back(label);
        return draw_text(list, label, text, color);
      }
    }
  }
  void take(ImVec2 p) { taken_.push_back({p.x - 3, p.y - 3, p.x + 3, p.y + 3}); }

 private:
  bool is_free(const Box& label) const {
    const bool is_inside =
        label.x0 >= box_.x0 && label.x1 <= box_.x1 && label.y0 >= box_.y0 && label.y1 <= box_.y1;
    return is_inside && std::ranges::none_of(taken_, [&](const Box& other) {
             return label.x0 < other.x1 && other.x0 < label.x1 && label.y0 < other.y1 &&
                    other.y0 < label.y1;
           });
  }

  Box box_;
  std::vector<Box> taken_;
};

Color color_of(const TriedLever& lever, bool is_best) {
  return !lever.report.fits ? theme::alarm : is_best ? theme::accent : theme::faint;
}

const TriedLever* nearest(const Plot& plot, const LeverTable& table) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const float em = ImGui::GetFontSize();
  const TriedLever* found = nullptr;
  float least = em * em;  // within a letter's width of the mouse: points are small
  for (const TriedLever& lever : table.tried) {
    const ImVec2 p = plot.place(lever.report);
    const float distance = (p.x - mouse.x) * (p.x - mouse.x) + (p.y - mouse.y) * (p.y - mouse.y);
    if (is_drawn(lever, table) && distance < least) least = distance, found = &lever;
  }
  return found;
}

void draw_points(const Plot& plot, const LeverTable& table, ViewState& view) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float em = ImGui::GetFontSize();
  const auto best = unbeaten(table, view.measure);
  Names names(plot.box);
  const ImVec2 now = plot.place(table.now());
  names.take(now);
  for (const TriedLever& lever : table.tried)
    if (is_drawn(lever, table)) names.take(plot.place(lever.report));
  names.put(list, now, "now", theme::bright);
  // Those that nothing beats have their names first.
  for (const bool names_best : {true, false})
    for (const TriedLever& lever : table.tried) {
      const bool is_best = std::ranges::find(best, &lever) != best.end();
      if (is_best != names_best || !is_drawn(lever, table)) continue;
      const ImVec2 p = plot.place(lever.report);
      ++view.facts.front_points;
      const bool is_lit = lever.name == view.hovered_lever ||
                          std::ranges::find(view.marked, lever.name) != view.marked.end();
      list.AddCircleFilled(p, 0.28F * em, ink(color_of(lever, is_best)));
      if (is_lit) list.AddCircle(p, 0.5F * em, ink(theme::bright), 0, 1.5F);
      if (lever.kind != LeverKind::Plan || is_lit)
        names.put(list, p, lever.name, is_best ? theme::text : theme::faint);
    }
  list.AddCircleFilled(now, 0.28F * em, ink(theme::bright));
  list.AddCircle(now, 0.55F * em, ink(theme::bright), 0, 2);
}

// What is not drawn is said.
std::string left_out(const LeverTable& table) {
  std::string names;
  for (const TriedLever& lever : table.tried)
    if (!is_drawn(lever, table)) names += (names.empty() ? "" : ", ") + lever.name;
  return names.empty() ? "" : "Far slower, not drawn: " + names + ".";
}

}  // namespace

void draw_front(ViewModel& model, ViewState& view) {
  const auto table = model.levers().newest();
  text_line("time of a sample against memory", theme::faint);
  if (!table || !table->now().applies) return;
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float height = std::clamp(room.y - 4.5F * em, 9 * em, 24 * em);
  ImGui::InvisibleButton("front", {std::max(1.0F, room.x), height});
  const Box box{at.x + 4.2F * em, at.y + 4, at.x + room.x - 4, at.y + height - 2.6F * em};
  const Plot plot = plot_of(*table, view.measure, box);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  draw_axes(list, plot, em);
  draw_capacity(list, plot, table->comparison.budget.capacity);
  draw_plans(list, plot, table->plans);
  if (ImGui::IsItemHovered())
    if (const TriedLever* lever = nearest(plot, *table)) {
      describe_lever(*lever);
      use_lever(*lever, model, view);
    }
  draw_points(plot, *table, view);
  text_wrapped(to_text(table->comparison.conclusion) + " " + left_out(*table), theme::faint);
}

}  // namespace tidemark::gui
