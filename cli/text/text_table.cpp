// Fits the columns to the width, leaving out the least important, then draws cells and bars.
#include "cli/text/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cli/text/wrapping.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t shortest_bar = 8, longest_bar = 24, shortest_wrapped = 24;
constexpr std::size_t gap = 2;

std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  for (; times > 0; --times) result += text;
  return result;
}

// Of no line can a word be cut.
std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (const std::string& word : wrapped_lines(text, 1))
    longest = std::max(longest, display_width(word));
  return longest;
}

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (const std::size_t width : widths) sum += width == 0 ? 0 : width + gap;
  return sum - std::min(sum, gap);
}

}  // namespace

bool TextTable::is_empty(std::size_t column) const {
  if (columns_[column].align == Align::Bar) return rows_.empty();
  return !rows_.empty() &&
         std::ranges::all_of(rows_, [&](const auto& row) { return row[column].text.empty(); });
}

TextTable::Layout TextTable::fit(const Style& style) const {
  Layout layout{std::vector<std::size_t>(columns_.size()), ""};
  auto& widths = layout.widths;
  std::vector<std::size_t> least(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (is_empty(c)) continue;
    const TextColumn& column = columns_[c];
    widths[c] = std::max(display_width(column.title), display_width(column.unit));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c].text));
    if (column.align == Align::Bar) widths[c] = longest_bar;
    least[c] = column.align == Align::Bar ? shortest_bar : widths[c];
    if (column.align != Align::Wrapped) continue;
    least[c] = std::min(widths[c], shortest_wrapped);
    for (const auto& row : rows_) least[c] = std::max(least[c], longest_word(row[c].text));
  }
  while (total(least) > style.width) {
    std::size_t worst = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (widths[c] > 0 && columns_[c].importance < 10 &&
          (worst == columns_.size() || columns_[c].importance < columns_[worst].importance))
        worst = c;
    if (worst == columns_.size()) break;
    for (std::size_t c = worst; c == worst || (c < columns_.size() && columns_[c].belongs_left);
         ++c)
      widths[c] = least[c] = 0;
    const std::string& title = columns_[worst].title;
    layout.left_out += (layout.left_out.empty() ? "" : ", ") + (title.empty() ? "bars" : title);
  }
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (total(widths) > style.width)
      widths[c] -= std::min(widths[c] - least[c], total(widths) - style.width);
  return layout;
}

std::string TextTable::bar(const TextCell& cell, std::size_t width, const Style& style) const {
  constexpr std::array<std::string_view, 8> eighths = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto steps = static_cast<std::size_t>(
      std::lround(std::clamp(cell.bar, 0.0, 1.0) * static_cast<double>(8 * width)));
  const std::size_t full = steps / 8;
  const std::size_t limit =
      mark_ ? std::min(width - 1, static_cast<std::size_t>(*mark_ * static_cast<double>(width)))
            : width;
  std::string drawn = style.paint(repeat("█", std::min(full, limit)), Ink::Bar);
  std::size_t at = std::min(full, limit);
  if (at == full && at < limit) drawn += style.paint(eighths[steps % 8], Ink::Bar), ++at;
  for (; at < width; ++at) {
    if (at == limit) {
      drawn += "│";
    } else {
      drawn += at < full ? style.paint("▒", Ink::Bad) : " ";
    }
  }
  return drawn;
}

// As many lines as the longest wrapped cell needs.
void TextTable::add_line(std::string& text, const std::vector<TextCell>& cells,
                         const std::vector<std::size_t>& widths, const Style& style) const {
  std::vector<std::vector<std::string>> lines(columns_.size());
  std::size_t height = 1;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0) continue;
    if (columns_[c].align == Align::Wrapped) {
      lines[c] = wrapped_lines(cells[c].text, widths[c]);
    } else {
      lines[c] = {cells[c].text};
    }
    height = std::max(height, lines[c].size());
  }
  for (std::size_t i = 0; i < height; ++i) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!line.empty()) line += std::string(gap, ' ');
      if (cells[c].bar > 0 && i == 0) {
        line += bar(cells[c], widths[c], style);
        continue;
      }
      const std::string shown = i < lines[c].size() ? lines[c][i] : "";
      const std::string blanks(widths[c] - std::min(widths[c], display_width(shown)), ' ');
      const std::string painted = style.paint(shown, cells[c].ink);
      line += columns_[c].align == Align::Right ? blanks + painted : painted + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
}

std::string TextTable::draw(const Style& style, std::string_view where) const {
  const auto& [widths, left_out] = fit(style);
  std::vector<TextCell> titles, units;
  for (const TextColumn& column : columns_) {
    titles.push_back({column.title, Ink::Bold});
    units.push_back({column.unit, Ink::Dim});
  }
  std::string text;
  add_line(text, titles, widths, style);
  if (std::ranges::any_of(columns_, [](const TextColumn& c) { return !c.unit.empty(); }))
    add_line(text, units, widths, style);
  for (const auto& row : rows_) add_line(text, row, widths, style);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (mark_ && columns_[c].align == Align::Bar && widths[c] > 0)
      text += fmt::format("│ {}\n", legend_);
  if (!left_out.empty())
    text += fmt::format("(left out of {} columns: {}{}{})\n", style.width, left_out,
                        where.empty() ? "" : "; ", where);
  return text;
}

}  // namespace tidemark::cli
