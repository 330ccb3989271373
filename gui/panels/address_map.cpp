// The arena at the cursor: which addresses are taken, by whom, and the gaps between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/navigation.h"
#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

// The first buffer that ends after the address. The list is sorted by begin, and hardly any two
// overlap (only where one goes and the next comes in the same nanosecond), so ends are sorted, too.
std::size_t first_after(const Opened& opened, const std::vector<BufferId>& list, double address) {
  const auto found = std::ranges::partition_point(list, [&](BufferId id) {
    return static_cast<double>(opened.recording.offsets[index(id)] +
                               opened.schedule()[id].size.count) <= address;
  });
  return static_cast<std::size_t>(found - list.begin());
}

struct Place {
  const Opened& opened;
  const LiveSet& live;
  Axis axis;
  Box box;
};

void draw_buffer(ImDrawList& list, const Place& place, std::size_t i, const ViewState& view) {
  const BufferId id = place.live.by_address[i];
  const Buffer& buffer = place.opened.schedule()[id];
  const auto begin = static_cast<double>(place.opened.recording.offsets[index(id)]);
  const float x0 = std::max(place.box.x0, place.axis.to_pixel(begin));
  const float x1 =
      std::min(place.box.x1, place.axis.to_pixel(begin + static_cast<double>(buffer.size.count)));
  Color color = color_of(buffer.category);
  if (index(id) % 2 == 1) color = mixed(color, theme::ground, 0.2);  // neighbours are told apart
  const bool is_marked = belongs_to(place.opened, id, view.selection);
  if (!is_marked && !view.selection.is_empty()) color = mixed(theme::plot, color, 0.45);
  // No seam of ground between narrow neighbours: that would look like free memory.
  const float seam = x1 - x0 > 6 ? 1 : 0;
  list.AddRectFilled({x0, place.box.y0}, {std::max(x0 + 1, x1 - seam), place.box.y1}, ink(color));
  const bool is_single = view.selection.buffer || view.selection.op != no_op;
  if (is_marked && is_single)
    list.AddRect({x0, place.box.y0}, {x1, place.box.y1}, ink(theme::bright), 0, 0, 2);
  const float em = ImGui::GetFontSize();
  if (x1 - x0 > 4 * em)
    draw_text(list, {x0 + 4, place.box.y0, x1 - 4, place.box.y1}, place.opened.describe(id),
              text_color_on(color));
}

// Buffers below a pixel are drawn as one: the first of each pixel column.
void draw_buffers(ImDrawList& list, const Place& place, const ViewState& view) {
  const auto& buffers = place.live.by_address;
  const double pixel = place.axis.per_pixel();
  for (std::size_t i = first_after(place.opened, buffers, place.axis.range.begin);
       i < buffers.size();) {
    const BufferId id = buffers[i];
    const auto begin = static_cast<double>(place.opened.recording.offsets[index(id)]);
    if (begin >= place.axis.range.end) return;
    draw_buffer(list, place, i, view);
    const bool is_narrow = static_cast<double>(place.opened.schedule()[id].size.count) < pixel;
    const double next = (std::floor(begin / pixel) + 1) * pixel;
    i = is_narrow ? std::max(i + 1, first_after(place.opened, buffers, next)) : i + 1;
  }
}

void draw_gaps(ImDrawList& list, const Place& place, const std::vector<Gap>& gaps) {
  const float em = ImGui::GetFontSize();
  for (const Gap& gap : gaps) {
    const float x0 = std::max(place.box.x0, place.axis.to_pixel(static_cast<double>(gap.begin)));
    const float x1 = std::min(place.box.x1, place.axis.to_pixel(static_cast<double>(gap.end)));
    // Narrower than its hatching: the line above counts it.
    if (x1 - x0 < 2) continue;
    list.PushClipRect({x0, place.box.y0}, {x1, place.box.y1}, true);
    for (float x = x0 - place.box.height(); x < x1; x += 0.6F * em)  // hatched: nothing is here
      list.AddLine({x, place.box.y1}, {x + place.box.height(), place.box.y0}, ink(theme::line));
    list.PopClipRect();
    const std::string text = to_text(Bytes{gap.end - gap.begin}) + " free";
    if (x1 - x0 > text_width(text) + em)
      draw_text(list, {x0, place.box.y0, x1, place.box.y1}, text, theme::faint, Align::Center);
  }
}

void draw_address_axis(ImDrawList& list, const Place& place) {
  const float em = ImGui::GetFontSize();
  const Ticks ticks = binary_ticks(place.axis.range, 6 * em * place.axis.per_pixel());
  for (double bytes = ticks.first; bytes < place.axis.range.end; bytes += ticks.step) {
    const float x = std::floor(place.axis.to_pixel(bytes));
    const std::string text = byte_tick_text(bytes, ticks.step);
    list.AddLine({x, place.box.y1}, {x, place.box.y1 + 4}, ink(theme::faint));
    if (x + 3 + text_width(text) > place.box.x1) break;
    draw_text(list, {x + 3, place.box.y1 + 2, place.box.x1, place.box.y1 + 1.5F * em}, text,
              theme::faint);
  }
}

void draw_gap_tooltip(const std::vector<Gap>& gaps, double address) {
  for (const Gap& gap : gaps)
    if (static_cast<double>(gap.begin) <= address && address < static_cast<double>(gap.end))
      ImGui::SetTooltip("%s free", to_text(Bytes{gap.end - gap.begin}).c_str());
}

void use_hands(const Place& place, const std::vector<Gap>& gaps, ViewState& view) {
  if (!ImGui::IsItemHovered() && !ImGui::IsItemActive()) return;
  const ImGuiIO& io = ImGui::GetIO();
  const Limits limits = address_limits(place.opened);
  const double address = place.axis.to_value(io.MousePos.x);
  if (io.MouseWheel != 0)
    view.addresses =
        zoomed(view.addresses, address, std::pow(0.8, static_cast<double>(io.MouseWheel)), limits);
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right, 0))
    view.addresses =
        panned(view.addresses, -static_cast<double>(io.MouseDelta.x / place.box.width()), limits);
  const std::size_t i = first_after(place.opened, place.live.by_address, address);
  if (!ImGui::IsItemHovered() || !place.axis.range.contains(address)) return;
  const bool is_taken =
      i < place.live.by_address.size() &&
      static_cast<double>(place.opened.recording.offsets[index(place.live.by_address[i])]) <=
          address;
  if (!is_taken) return draw_gap_tooltip(gaps, address);
  const BufferId id = place.live.by_address[i];
  ImGui::BeginTooltip();
  text_line(place.opened.describe(id), theme::bright);
  text_line(fmt::format("{} at {} (byte {})", to_text(place.opened.schedule()[id].size),
                        to_text(Bytes{place.opened.recording.offsets[index(id)]}),
                        place.opened.recording.offsets[index(id)]));
  ImGui::EndTooltip();
  if (ImGui::IsItemClicked()) select_buffer(place.opened, id, view);
}

}  // namespace

void draw_address_map(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  if (opened.recording.offsets.empty())
    return text_line("This recording does not say where in memory its buffers were.", theme::faint);
  if (model.live().owner() != &opened) return text_line("counting ...", theme::faint);
  const LiveSet& live = model.live().current();
  const std::vector<Gap> gaps = gaps_of(opened, live);
  Bytes free, largest;
  for (const Gap& gap : gaps) {
    free += Bytes{gap.end - gap.begin};
    largest = std::max(largest, Bytes{gap.end - gap.begin});
  }
  text_wrapped(fmt::format("arena of {}: {} alive, {} free in {}, the largest {}",
                           to_text(opened.recording.planned), to_text(live.bytes), to_text(free),
                           count_text(gaps.size(), "gap"), to_text(largest)),
               theme::faint);
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = {std::max(1.0F, ImGui::GetContentRegionAvail().x),
                       std::max(3 * em, ImGui::GetContentRegionAvail().y)};
  ImGui::InvisibleButton("addresses", room,
                         ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight);
  const Box box{at.x, at.y, at.x + room.x, at.y + room.y - 1.6F * em};
  const Place place{opened, live, {view.addresses, box.x0, box.x1}, box};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRect(at, {at.x + room.x, at.y + room.y}, true);
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot));
  draw_gaps(list, place, gaps);
  draw_buffers(list, place, view);
  draw_address_axis(list, place);
  list.PopClipRect();
  use_hands(place, gaps, view);
}

}  // namespace tidemark::gui
