// Titles and legends, broken into lines, and the marks of a legend.
#include "analysis/export/caption.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::exports {
namespace {

constexpr double title_size = 13, text_size = 11;
constexpr double title_line = 17, text_line = 15, above = 6, below = 8;
// DejaVu Sans Bold is that much wider.
constexpr double bold = 1.16;
constexpr double mark_width = 20, gap = 12, row = 18;

double width_of(const LegendEntry& entry) {
  return (entry.mark == Mark::None ? 0 : mark_width) + text_width(entry.text, text_size) + gap;
}

void draw_mark(Svg& svg, double x, double y, const LegendEntry& entry) {
  switch (entry.mark) {
    case Mark::None:
      return;
    case Mark::Box:
      return svg.rect({x + 4, y - 9, 10, 10}, entry.color, "");
    case Mark::Point:
      return svg.circle(x + 9, y - 4, 5, entry.color, "");
    case Mark::Cross:
      return draw_cross(svg, x + 9, y - 4, entry.color, "");
    case Mark::Line:
    case Mark::Dashes:
      return draw_dash(svg, x, y - 4, entry.color, entry.mark);
    case Mark::Limit:
      return svg.line(x, y - 4, x + 16, y - 4, "limit");
  }
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, double width, double size) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::string longer =
        lines.empty() ? std::string(word) : fmt::format("{} {}", lines.back(), word);
    if (!lines.empty() && text_width(longer, size) <= width)
      lines.back() = longer;
    else
      lines.push_back(fitted(word, width, size));
  }
  return lines;
}

Caption::Caption(std::string_view title, std::string_view shown, double width)
    : title_(wrapped(title, width, title_size * bold)), shown_(wrapped(shown, width, text_size)) {}

double Caption::height() const {
  return above + title_line * static_cast<double>(title_.size()) +
         text_line * static_cast<double>(shown_.size()) + below;
}

void Caption::draw(Svg& svg, double x) const {
  double y = above;
  for (const std::string& line : title_)
    svg.text(x, y += title_line, line, {.kind = "title", .size = title_size});
  for (const std::string& line : shown_) svg.text(x, y += text_line, line, {.kind = "dim"});
}

Legend::Legend(std::vector<LegendEntry> entries, double width) : entries_(std::move(entries)) {
  double x = 0, y = row;
  for (LegendEntry& entry : entries_) {
    entry.text = fitted(entry.text, width - mark_width, text_size);
    if (x > 0 && x + width_of(entry) - gap > width) x = 0, y += row;
    places_.push_back({x, y});
    x += width_of(entry);
  }
}

double Legend::height() const { return places_.empty() ? 0 : places_.back().y + 6; }

void Legend::draw(Svg& svg, double x, double y) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const double at_x = x + places_[i].x, at_y = y + places_[i].y;
    draw_mark(svg, at_x, at_y, entries_[i]);
    const bool is_heading = entries_[i].mark == Mark::None;
    svg.text(at_x + (is_heading ? 0 : mark_width), at_y, entries_[i].text,
             {.kind = is_heading ? "dim" : ""});
  }
}

void draw_dash(Svg& svg, double x, double y, Color color, Mark mark) {
  svg.stroke(fmt::format("M{} {}h16", svg_number(x), svg_number(y)), color,
             mark == Mark::Dashes ? "front dashed" : "front");
}

void draw_cross(Svg& svg, double x, double y, Color color, std::string_view tooltip) {
  // One shape that can be touched: two strokes would be two.
  svg.area(fmt::format("M{} {}l-2 2 3 3 -3 3 2 2 3 -3 3 3 2 -2 -3 -3 3 -3 -2 -2 -3 3z",
                       svg_number(x - 3), svg_number(y - 5)),
           color, tooltip);
}

}  // namespace tidemark::exports
