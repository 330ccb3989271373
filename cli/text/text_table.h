// Tables for people: columns as wide as what they hold, one of them a bar that takes what is left.
// Columns that do not fit the width are left out, the least important first, and named; columns
// without any text are not shown at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/text/terminal.h"

namespace tidemark::cli {

enum class Align : unsigned char { Left, Right, Bar, Wrapped };

struct TextColumn {
  std::string title;
  Align align = Align::Right;  ///< Wrapped: flush left, and continued in further lines
  int importance = 10;         ///< 10 stays whatever the width
  std::string unit = {};       ///< below the title
  bool belongs_left = false;   ///< left out together with the column to its left
};

struct TextCell {
  std::string text;
  Ink ink = Ink::Plain;
  double bar = 0;  ///< in a bar column: filled fraction
};

class TextTable {
 public:
  void add_column(TextColumn column) { columns_.push_back(std::move(column)); }
  /// One cell per column, in order.
  void add_row(std::vector<TextCell> row) { rows_.push_back(std::move(row)); }
  /// Fraction of the bars where a limit lies; what is beyond it is drawn otherwise. `legend` says
  /// what the mark means.
  void set_mark(double fraction, std::string legend) {
    mark_ = fraction;
    legend_ = std::move(legend);
  }

  /// Ends with a line that names the columns left out, if any, and `where` they are to be had.
  std::string draw(const Style& style, std::string_view where = {}) const;

 private:
  struct Layout {
    std::vector<std::size_t> widths;  // 0 = not shown
    std::string left_out;
  };
  Layout fit(const Style& style) const;
  bool is_empty(std::size_t column) const;
  void add_line(std::string& text, const std::vector<TextCell>& cells,
                const std::vector<std::size_t>& widths, const Style& style) const;
  std::string bar(const TextCell& cell, std::size_t width, const Style& style) const;

  std::vector<TextColumn> columns_;
  std::vector<std::vector<TextCell>> rows_;
  std::optional<double> mark_;
  std::string legend_;
};

}  // namespace tidemark::cli
